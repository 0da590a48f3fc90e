import { JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { shownPath } from '@svc/core'
import { homeFile, removeFromFile } from '../registry/home-file.ts'
import { loginKey, pinsKey, RECORDS, switchKey } from '../registry/records.ts'
import { configuredServer, openStore, reloadServers, SERVER_ARG, contextOf } from './shared.ts'

/** `svc mcp remove <name>`: removes a server from mcp.yaml, and deletes its approvals and its login. */
export class McpRemove extends SvcCommand {
  static override summary = 'Remove an MCP server and its approvals'
  static override examples = ['<%= config.bin %> <%= command.id %> docs']
  static override args = SERVER_ARG
  static override flags = JSON_FLAG

  async run(): Promise<number> {
    const { args, flags } = await this.parse(McpRemove)
    const { name } = args
    const server = await configuredServer(this, name)
    const file = homeFile(this.home)
    await removeFromFile(file, name, `It is configured in ${server.where}: remove it there`)
    if (flags.json) this.print(JSON.stringify({ removed: name, file }))
    else this.print(`removed ${name} from ${shownPath(file)}`)
    const ctx = contextOf(this, 'mcp remove')
    const code = await reloadServers(this, ctx)
    // after the reload: a server that still uses it would write the records again
    const store = await openStore(this, ctx)
    const keys = [switchKey(server), pinsKey(server), loginKey(server)]
    await store.batch(
      keys.map(key => ({ op: 'delete', collection: RECORDS, key })),
      {},
      ctx
    )
    return code
  }
}
