import { join, resolve } from 'node:path'
import { Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { shownPath, SvcError } from '@svc/core'
import { RunQueue, Store } from '@svc/core/contracts'
import { connectionOf, withDefaults } from './config.ts'
import { schemaMissing, startFailure, storeError } from './errors.ts'
import { createLine, type Line } from './line.ts'
import { type MigrationProgress, migrate } from './migration.ts'
import { openSource } from './migration-source.ts'
import { FORMAT, formatIn, prepareSchema, quoted } from './schema.ts'

const NAME = '@svc/plugin-store-postgres'

/** Works with the database of the configuration, through a connection of its own. */
async function withDatabase<T>(settings: unknown, work: (line: Line, schema: string) => Promise<T>): Promise<T> {
  const { target, direct = target, schema, waitMs } = connectionOf(withDefaults(settings))
  const line = createLine({ ...direct, applicationName: `${direct.applicationName} command` })
  try {
    await line.session(waitMs)
    return await work(line, schema)
  } catch (error) {
    if ((error as Error).name === 'AbortError') throw error // Ctrl-C
    throw startFailure(error instanceof SvcError ? error : storeError(error), NAME)
  } finally {
    await line.close()
  }
}

/** `svc store init`: creates the tables. */
export class StoreInit extends SvcCommand {
  static override summary = 'Create the tables of the store in PostgreSQL, once'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --json']
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { flags } = await this.parse(StoreInit)
    const settings = await this.setting('store')
    const { schema, created } = await withDatabase(settings, async (line, name) => ({
      schema: name,
      created: await prepareSchema(line, name),
    }))
    const plugins = await this.#prepareOthers()
    if (flags.json) return this.print(JSON.stringify({ schema, created, format: FORMAT, plugins }))
    this.print(created ? `the tables are created in the schema ${schema}` : `the schema ${schema} has its tables already`)
    for (const plugin of plugins) this.print(`${plugin} has its tables`)
  }

  /** Plugins that use the database create their tables when they start. Returns the names of these plugins. */
  async #prepareOthers(): Promise<string[]> {
    const host = await this.host({ only: [Store.name, RunQueue.name], settings: { store: { migrate: true } }, log: true })
    return host
      .report()
      .plugins.filter(({ requires }) => requires.includes('postgres'))
      .map(({ name }) => name)
  }
}

/** `svc store status`: describes the store without a server. */
export class StoreStatus extends SvcCommand {
  static override summary = 'Show the state of the store in PostgreSQL'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --json']
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { flags } = await this.parse(StoreStatus)
    const facts = await withDatabase(await this.setting('store'), statusOf)
    if (flags.json) return this.print(JSON.stringify(facts))
    const { schema, server, role, pooled, bytes, connections, spaces } = facts
    this.print(`schema ${schema}, format ${facts.format}, ${(bytes / 1e6).toFixed(1)} MB`)
    this.print(`PostgreSQL ${server}, ${role}${pooled ? ', through a pooler' : ''}`)
    this.print(`connections: ${connections.used} of ${connections.allowed} in use`)
    for (const { name, version } of spaces) this.print(`space ${name}, version ${version}`)
  }
}

async function statusOf(line: Line, schema: string) {
  const format = await formatIn(line, schema)
  if (format === 0) throw schemaMissing(schema)
  const { pooled, standby } = await line.session()
  const { rows } = await line.one(
    {
      text: `SELECT current_setting('server_version') AS server,
        current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer AS allowed,
        (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
        (SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
          WHERE n.nspname = $1 AND c.relkind = 'r') AS bytes`,
    },
    [schema]
  )
  const spaces = await line.one({ text: `SELECT name, version FROM ${quoted(schema)}.spaces ORDER BY name` })
  const [row] = rows
  return {
    schema,
    format,
    server: String(row!.server),
    role: standby ? 'replica' : 'primary',
    pooled,
    bytes: Number(row!.bytes),
    connections: { used: Number(row!.used), allowed: Number(row!.allowed) },
    spaces: spaces.rows.map(({ name, version }) => ({ name: String(name), version: Number(version) })),
  }
}

/** `svc store migrate`: moves the embedded store into PostgreSQL. */
export class StoreMigrate extends SvcCommand {
  static override summary = 'Move the embedded store of SQLite into PostgreSQL'
  static override description =
    'Copies everything into the empty database of store.url, and compares both by their hashes. The command only reads the file. If it is interrupted, run it again: it continues where it stopped.'
  static override examples = [
    '<%= config.bin %> <%= command.id %>',
    '<%= config.bin %> <%= command.id %> --from sqlite:/var/lib/svc/svc.db --to postgres://svc@db.example/svc --json',
  ]
  static override flags = {
    from: Flags.string({
      summary: 'The former store; default: svc.db in the svc home',
      helpValue: 'sqlite:<file>',
      parse: async word => pathOf(word),
    }),
    to: Flags.string({ summary: 'The database, instead of store.url', helpValue: 'postgres://…' }),
    restart: Flags.boolean({ summary: 'Delete what an earlier run has copied, and begin again', default: false }),
    ...JSON_FLAG,
  }

  async run(): Promise<void> {
    const { flags } = await this.parse(StoreMigrate)
    const own = join(this.home, 'svc.db')
    const file = flags.from === undefined ? own : resolve(this.cwd, flags.from)
    const settings = { ...((await this.setting('store')) as object), ...(flags.to === undefined ? {} : { url: flags.to }) }
    using source = openSource(file)
    const began = performance.now()
    const report = progressOf(source.counts, line => this.note(line))
    const { restart } = flags
    const done = await withDatabase(settings, async (line, schema) => ({
      schema,
      ...(await migrate({ source, line, schema, restart, signal: this.signal, report })),
    }))
    const seconds = Math.round((performance.now() - began) / 100) / 10
    if (flags.json) return this.print(JSON.stringify({ from: file, ...done, seconds }))
    const { records, entries, spaces, hash } = done
    this.print(`${shownPath(file)} is moved into the schema ${done.schema} in ${seconds} s`)
    this.print(`${records} records and ${entries} log entries of ${spaces.length} spaces, equal by SHA-256 ${hash}`)
    this.note('the file is unchanged; start the server with store.url, and keep the file until you are sure')
  }
}

/** The path in `sqlite:<file>`. */
function pathOf(from: string): string {
  if (!from.startsWith('sqlite:')) throw new Error('must be sqlite:<file>')
  return from.slice('sqlite:'.length)
}

const REPORT_MS = 10_000

/** Reports a long migration from time to time. */
function progressOf(all: { readonly records: number; readonly rows: number }, note: (line: string) => void) {
  let last = performance.now()
  return ({ phase, records, entries }: MigrationProgress) => {
    if (performance.now() - last < REPORT_MS) return
    last = performance.now()
    note(phase === 'copy' ? `copied ${records} of ${all.records} records, ${entries} log entries` : 'comparing')
  }
}

export const COMMANDS = { 'store:init': StoreInit, 'store:status': StoreStatus, 'store:migrate': StoreMigrate }
