import { codeOf } from '@svc/core'
import type { Line, Statement } from './line.ts'
import { migrationUnfinished, schemaMissing, schemaNewer, schemaOlder } from './errors.ts'

/** The format of the tables that this program writes. */
export const FORMAT = 2

// Text of keys and positions has the collation "C": its order is that of the bytes of UTF-8. A position can be longer than an entry
// of a B-tree, so it has a head, which is indexed, and a tail (`places.ts`). Records and streams get their ids in blocks from one
// sequence, so that a commit needs no answer with ids.
const TABLES = (s: string) => `
CREATE TABLE ${s}.meta(name text PRIMARY KEY, value bigint NOT NULL);
CREATE TABLE ${s}.spaces(name text COLLATE "C" PRIMARY KEY, version integer NOT NULL);
CREATE TABLE ${s}.collections(id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE, space text COLLATE "C" NOT NULL, watched boolean NOT NULL, lasting boolean NOT NULL);
CREATE TABLE ${s}.indexes(id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, collection integer NOT NULL, kind text NOT NULL, spec text COLLATE "C" NOT NULL, UNIQUE(collection, kind, spec));
CREATE TABLE ${s}.logs(id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE, space text COLLATE "C" NOT NULL);
CREATE SEQUENCE ${s}.ids INCREMENT BY 1000;
CREATE SEQUENCE ${s}.fences;
CREATE TABLE ${s}.records(id bigint PRIMARY KEY, collection integer NOT NULL, key text COLLATE "C" NOT NULL, version bigint NOT NULL, value text NOT NULL, UNIQUE(collection, key)) WITH (fillfactor = 85);
CREATE TABLE ${s}.places(idx integer NOT NULL, head text COLLATE "C" NOT NULL, tail text COLLATE "C" NOT NULL, record bigint NOT NULL);
CREATE INDEX places_order ON ${s}.places(idx, head, record);
CREATE TABLE ${s}.texts(idx integer NOT NULL, record bigint NOT NULL, words integer NOT NULL, body text COLLATE "C" NOT NULL, lexemes tsvector NOT NULL, PRIMARY KEY(idx, record));
CREATE INDEX texts_lexemes ON ${s}.texts USING gin(lexemes);
CREATE TABLE ${s}.streams(id bigint PRIMARY KEY, log integer NOT NULL, name text COLLATE "C" NOT NULL, length integer NOT NULL, UNIQUE(log, name)) WITH (fillfactor = 70);
CREATE TABLE ${s}.entries(stream bigint NOT NULL, seq integer NOT NULL, value text NOT NULL, PRIMARY KEY(stream, seq));
CREATE TABLE ${s}.leases(name text COLLATE "C" PRIMARY KEY, holder text COLLATE "C" NOT NULL, fence bigint NOT NULL, expires bigint NOT NULL) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE ${s}.feed(collection integer NOT NULL, key text COLLATE "C" NOT NULL, xid xid8 NOT NULL, gone boolean NOT NULL, at timestamptz NOT NULL, PRIMARY KEY(collection, key)) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX feed_order ON ${s}.feed(collection, xid, key);
CREATE INDEX feed_gone ON ${s}.feed(at) WHERE gone;
CREATE TABLE ${s}.writers(id uuid PRIMARY KEY, n bigint NOT NULL, at timestamptz NOT NULL) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
CREATE TABLE ${s}.counts(key text COLLATE "C" PRIMARY KEY, ends bigint NOT NULL, windows text NOT NULL) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX counts_ends ON ${s}.counts(ends);
INSERT INTO ${s}.meta VALUES ('catalog', 0), ('forgotten', 0), ('probe', 0), ('format', 1);
`

// The bus between workers (`@svc/plugin-bus-postgres`). Its tables are not logged: a crash or a failover empties them, and the
// workers join again. `bus_epoch` shows that it has happened.
const BUS_TABLES = (s: string) => `
CREATE UNLOGGED TABLE ${s}.bus_epoch(single boolean PRIMARY KEY DEFAULT true CHECK (single), id text NOT NULL);
CREATE UNLOGGED TABLE ${s}.bus_members(worker text COLLATE "C" PRIMARY KEY, cluster text COLLATE "C" NOT NULL, node text NOT NULL, facts text NOT NULL, seen bigint NOT NULL, claimed bigint NOT NULL) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
CREATE UNLOGGED TABLE ${s}.bus_posts(receiver text COLLATE "C" NOT NULL, sender text COLLATE "C" NOT NULL, n bigint NOT NULL, body text NOT NULL, at bigint NOT NULL, PRIMARY KEY(receiver, sender, n)) WITH (autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX bus_posts_at ON ${s}.bus_posts(at);
CREATE UNLOGGED TABLE ${s}.bus_permits(name text COLLATE "C" PRIMARY KEY, held jsonb NOT NULL) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02);
UPDATE ${s}.meta SET value = 2 WHERE name = 'format';
`

/** What leads from each format to the next. */
const STEPS = [(s: string) => `CREATE SCHEMA IF NOT EXISTS ${s}; ${TABLES(s)}`, BUS_TABLES]

/** The name of the schema as a part of a statement. */
export const quoted = (schema: string): string => `"${schema.replaceAll('"', '""')}"`

/** A number for advisory locks that belongs to this schema and purpose. */
export const lockOf = (schema: string, purpose: string): Statement['text'] => `hashtextextended('svc ${purpose} ${schema}', 0)`

/** The table that a schema has while a store is moved into it (`migration.ts`). */
export const migrationTable = (schema: string): string => `${quoted(schema)}.migration`

/** The format of the stored tables; 0 if there are none. Throws STORE_UNAVAILABLE while a store is moved into them. */
export async function formatIn(line: Line, schema: string): Promise<number> {
  const { rows: found } = await line.one(
    { text: 'SELECT to_regclass($1) IS NOT NULL AS found, to_regclass($2) IS NOT NULL AS moving' },
    [`${quoted(schema)}.meta`, migrationTable(schema)]
  )
  if (found[0]!.moving === true) throw migrationUnfinished(schema)
  if (found[0]!.found !== true) return 0
  const { rows } = await line.one({ text: `SELECT value FROM ${quoted(schema)}.meta WHERE name = 'format'` })
  return Number(rows[0]?.value ?? 0)
}

/** Creates the tables, or those that a former version lacks, once: concurrent callers wait for each other. Returns whether this call did it. Throws STORE_NEWER. */
export async function prepareSchema(line: Line, schema: string): Promise<boolean> {
  const s = quoted(schema)
  if (isPresent(await formatIn(line, schema))) return false
  await line.one({ text: 'BEGIN' })
  try {
    await line.one({ text: `SELECT pg_advisory_xact_lock(${lockOf(schema, 'schema')})` })
    // another server can have done it meanwhile
    const format = await formatIn(line, schema)
    const steps = STEPS.slice(format)
    for (const step of steps) await line.one({ text: step(s) })
    await line.one({ text: 'COMMIT' })
    return steps.length > 0
  } catch (error) {
    await line.one({ text: 'ROLLBACK' }).catch(() => {})
    // inside a transaction, PostgreSQL can remember that the tables were missing before it waited for the lock
    if (codeOf(error) === DUPLICATE && isPresent(await formatIn(line, schema))) return false
    throw error
  }
}

/** SQLSTATE of a table that exists. */
const DUPLICATE = '42P07'

/** Throws STORE_UNAVAILABLE unless the tables are there, in the format of this program, and STORE_NEWER. */
export async function requireSchema(line: Line, schema: string): Promise<void> {
  const format = await formatIn(line, schema)
  if (isPresent(format)) return
  throw format === 0 ? schemaMissing(schema) : schemaOlder(schema, format)
}

/** Whether all tables are there. Throws STORE_NEWER. */
function isPresent(format: number): boolean {
  if (format > FORMAT) throw schemaNewer(format, FORMAT)
  return format === FORMAT
}
