"""The only writers of the state of tasks and steps (P6, P8, P20–P26); one verb, one module.

Two rules keep any number of writers apart:

- Every move is made under the lock of the *task*'s row. Whoever holds it may read the states of the
  task's steps and decide: they cannot change meanwhile, and no claim is at work on them.
- What is locked by another session is not waited for where others would wait behind: a claim passes
  over steps whose task is locked, a scheduler puts back replies to a locked task, a sweep goes on
  past it. People's acts wait for the one task that they are about.
- A claim locks the agent's gate, then tasks and their pending steps that are free (SKIP LOCKED).
- Gates come after tasks, and alerts after gates: whoever has locked an alert waits for no gate. A
  scheduler that raises alerts as it records commits before it claims. A gate is waited for shortly:
  one that is locked for longer is another session's, and passed over until it is free.
- What a jump of the clock moves are times, not states: it takes the rows that no one has locked, and
  waits for none.
- What is counted of failures is only ever added (`incidents`): nobody waits for it. The incident and
  the open alert that a failure refers to are locked without waiting, before anything is written: a
  failure whose cause is locked waits, the rest of its batch does not.

Under the lock each write still names the state and the attempt it expects, and a write that does
not land is a normal outcome with a name (`Refusal`), never an exception.
"""
