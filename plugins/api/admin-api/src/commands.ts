import { JSON_FLAG, MANAGED_FLAGS, SvcCommand } from '@svc/cli/command'
import { svcError } from '@svc/core'
import { managedServer, table } from '@svc/plugin-kit'

/** The answer of `GET /api/v1/nodes`. */
interface ShownNodes {
  readonly cluster: string | null
  readonly nodes: readonly {
    readonly id: string
    readonly is_self: boolean
    readonly workers: readonly { readonly name: string; readonly version: string | null }[]
  }[]
}

const HEAD = ['NODE', 'WORKER', 'VERSION', '']

/** `svc nodes`: the nodes of the cluster. */
export class Nodes extends SvcCommand {
  static override summary = 'List the nodes of the cluster with their workers'
  static override description =
    'Servers with one PostgreSQL, or with one store and one cluster.name, are a cluster. A node that is lost stays in the list for up to 15 seconds.'
  static override examples = ['<%= config.bin %> <%= command.id %>', '<%= config.bin %> <%= command.id %> --json']
  static override flags = { ...MANAGED_FLAGS, ...JSON_FLAG }

  async run(): Promise<void> {
    const { flags } = await this.parse(Nodes)
    const server = await managedServer(this, flags)
    if (!server) throw serverNone()
    const shown = await server.request<ShownNodes>('GET', '/api/v1/nodes')
    if (flags.json) return this.print(JSON.stringify(shown))
    if (shown.cluster === null) return this.note('this server belongs to no cluster')
    this.print(`cluster ${shown.cluster}`)
    const rows = shown.nodes.flatMap(({ id, is_self: isSelf, workers }) =>
      workers.map(({ name, version }) => [id, name, version ?? '', isSelf ? 'this node' : ''])
    )
    for (const line of table([HEAD, ...rows])) this.print(line)
  }
}

const serverNone = () =>
  svcError('SERVER_NONE', 'no server runs from this home, and only a server knows its cluster', {
    hint: 'Start it with `svc serve`, or name one with --url',
  })

export const COMMANDS = { nodes: Nodes }
