import { JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { connectionOf, withDefaults } from './config.ts'
import { schemaMissing, storeError } from './errors.ts'
import { createLine, type Line } from './line.ts'
import { FORMAT, formatIn, prepareSchema, quoted } from './schema.ts'

/** Works with the database of the configuration, through a connection of its own. */
async function withDatabase<T>(settings: unknown, work: (line: Line, schema: string) => Promise<T>): Promise<T> {
  const { target, direct = target, schema, waitMs } = connectionOf(withDefaults(settings))
  const line = createLine({ ...direct, applicationName: `${direct.applicationName} command` })
  try {
    await line.session(waitMs)
    return await work(line, schema)
  } catch (error) {
    throw storeError(error)
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
    if (flags.json) return this.print(JSON.stringify({ schema, created, format: FORMAT }))
    this.print(created ? `the tables are created in the schema ${schema}` : `the schema ${schema} has its tables already`)
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

export const COMMANDS = { 'store:init': StoreInit, 'store:status': StoreStatus }
