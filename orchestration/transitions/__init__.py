"""The only writers of the state of tasks and steps (P6, P8, P20–P26); one verb, one module.

These rules keep any number of writers apart:

- Every move is made under the lock of the *task*'s row. Its holder may read the states of the
  task's steps and decide: they cannot change meanwhile, and no claim is at work on them.
- A batch does not wait for a row that another session has locked: a claim skips steps of locked tasks,
  a scheduler puts back replies to a locked task, a sweep skips it. An act of a person waits for its
  one task.
- A claim locks the agent's gate, then tasks and their pending steps that are free (SKIP LOCKED).
- Gates come after tasks, and alerts after gates: a session that has locked an alert waits for no gate.
  A scheduler that raises alerts as it records commits before it claims. The wait for a gate is
  short: one that stays locked is another session's, and is skipped until it is free.
- A jump of the clock moves times, not states: it takes the rows that are not locked, and waits for
  none.
- Counts of failures are only ever added (`incidents`), so no session waits for them. The incident and
  the open alert of a failure are locked without waiting, before anything is written: a failure whose
  cause is locked waits, the rest of its batch does not.

- What one transaction read, decided or released is written and sent by that one only.

What is not as its caller saw it is a normal outcome with a name (`Refusal`), found out under the lock. Each
write then still names the state, attempt and generation that it was decided on (`versions`): if a row
has others, a session has kept to no lock. That is `ConcurrentUpdate`; nothing is committed, and the
batch is decided anew.
"""
