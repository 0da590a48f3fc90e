import { JSON_FLAG, SvcCommand } from '@svc/cli/command'
import type { SqlValue } from '@svc/core/contracts'
import { openBoss } from '@svc/storage-kit/boss'
import { connectionOf, withDefaults } from './config.ts'
import { sendApart } from './database.ts'
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

/** Creates or changes the tables of the queue of runs; returns their schema. */
async function prepareQueue(line: Line, storeSchema: string, warn: (reason: string) => void): Promise<string> {
  const send = (text: string, values?: readonly unknown[]) =>
    sendApart(line, { text, ...(values ? { values: values as readonly SqlValue[] } : {}) })
  const log = { warn: (_: object, reason: string) => warn(reason), debug: () => {} }
  const { boss, schema } = await openBoss({ send, storeSchema, mayMigrate: true, log })
  await boss.stop({ graceful: false, close: false })
  return schema
}

/** `svc store init`: creates the tables. */
export class StoreInit extends SvcCommand {
  static override summary = 'Create the tables of the store in PostgreSQL, once'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --json']
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { flags } = await this.parse(StoreInit)
    const settings = await this.setting('store')
    const { schema, created, queue } = await withDatabase(settings, async (line, name) => ({
      schema: name,
      created: await prepareSchema(line, name),
      queue: await prepareQueue(line, name, reason => this.warn(reason)),
    }))
    if (flags.json) return this.print(JSON.stringify({ schema, created, format: FORMAT, queue }))
    this.print(created ? `the tables are created in the schema ${schema}` : `the schema ${schema} has its tables already`)
    this.print(`the tables of the queue are in the schema ${queue}`)
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
