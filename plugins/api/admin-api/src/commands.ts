import { JSON_FLAG, MANAGED_FLAGS, SvcCommand } from '@svc/cli/command'
import { svcError } from '@svc/core'
import { managedServer, oneLine, table } from '@svc/plugin-kit'

/** A part of the answer of `GET /api/v1/nodes`. */
interface ShownNodes {
  readonly cluster: string | null
  readonly nodes: readonly {
    readonly id: string
    readonly host: string | null
    /** Absent from a server of an older version. */
    readonly address?: { readonly url: string } | null
    readonly is_self: boolean
    readonly roles: readonly string[]
    readonly workers: readonly { readonly name: string; readonly version: string | null; readonly state: string | null }[]
    readonly plugin_set?: { readonly revision: number } | null
    readonly differs: boolean
    readonly differences: readonly ShownDifference[]
  }[]
}
interface ShownDifference {
  readonly what: string
  readonly name: string
  readonly here: string | null
  readonly there: string | null
}

/** Characters of a difference. */
const LONGEST = 300

const HEAD = ['NODE', 'HOST', 'URL', 'ROLES', 'WORKER', 'VERSION', 'PLUGINS', 'STATE', '']

/** `svc nodes`: the nodes of the cluster. */
export class Nodes extends SvcCommand {
  static override summary = 'List the nodes of the cluster with their workers'
  static override description =
    'Servers with one PostgreSQL, or with one store and one cluster.name, are a cluster. Shows what a node runs differently from the node that answers: the revision of the installed plugins (column PLUGINS), plugins, keys of the configuration, and versions of the stored data. A node that is lost stays in the list for up to 15 seconds; a worker that does not answer has the state "silent". The URL is where a node listens: one with a loopback address such as 127.0.0.1 is for clients on the machine of the node.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --json']
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }

  async run(): Promise<void> {
    const { flags } = await this.parse(Nodes)
    const server = await managedServer(this, flags)
    if (!server) throw serverNone()
    const shown = await server.request<ShownNodes>('GET', '/api/v1/nodes')
    if (flags.json) return this.print(JSON.stringify(shown))
    if (shown.cluster === null) return this.note('this server belongs to no cluster')
    this.print(oneLine(`cluster ${shown.cluster}`))
    const rows = shown.nodes.flatMap(({ id, host, address, is_self: isSelf, roles, workers, plugin_set: plugins }) =>
      workers.map(({ name, version, state }) => [
        id,
        host ?? '',
        address?.url ?? '',
        roles.join(','),
        // the name begins with that of its node, as `svc status --cluster` shows it
        name.startsWith(`${id}.`) ? name.slice(id.length + 1) : name,
        version ?? '',
        plugins?.revision ? `r${plugins.revision}` : '',
        state ?? 'silent',
        isSelf ? 'this node' : '',
      ])
    )
    // other machines have written these texts
    for (const line of table([HEAD, ...rows.map(row => row.map(cell => oneLine(cell)))])) this.print(line)
    for (const { id, differs, differences } of shown.nodes) {
      if (!differs) continue
      this.print(oneLine(`NODE_DIFFERS ${id}`))
      if (differences.length === 0) this.print('  it has not answered what it runs')
      for (const difference of differences) this.print(`  ${oneLine(textOf(difference), LONGEST)}`)
    }
  }
}

const textOf = ({ what, name, here, there }: ShownDifference) =>
  what === 'plugin_set'
    ? `the installed plugins: revision ${there ?? 'unknown'}; on this node revision ${here ?? 'unknown'}`
    : what === 'configuration'
      ? `configuration ${name}`
      : `${what} ${name}: ${there ?? 'missing'}, on this node ${here ?? 'missing'}`

const serverNone = () =>
  svcError('SERVER_NONE', 'only a running server knows its cluster, and no server runs from this svc home', {
    hint: 'Start it with `svc serve`, or name one with --url',
  })

export const COMMANDS = { nodes: Nodes }
