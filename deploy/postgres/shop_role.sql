-- The role of the web process for the shop alone. Postgres runs this file as it makes a new database; with a
-- database that was there before:
--   docker compose -f deploy/compose.yaml exec postgres psql -U sas -f /docker-entrypoint-initdb.d/shop_role.sql sas
\set password `cat /run/secrets/shop_database_password`
CREATE ROLE shop_web LOGIN PASSWORD :'password';
