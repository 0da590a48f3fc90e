import { systemContext } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { createTokens, type TokenShown } from '../tokens.ts'

const HEAD = ['ID', 'NAME', 'SCOPES', 'CREATED', 'EXPIRES', 'LAST USED']

/** `svc tokens list`: lists the tokens without their text, which the store does not have. */
export class TokensList extends SvcCommand {
  static override summary = 'List the access tokens'
  static override examples = ['<%= config.bin %> <%= command.id %>']
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { flags } = await this.parse(TokensList)
    const ctx = systemContext(this.signal, 'svc tokens list')
    const tokens = createTokens((await this.host()).service(Store))
    await tokens.open(ctx)
    const all = await tokens.list(ctx)
    if (flags.json) return this.print(JSON.stringify({ tokens: all }))
    if (all.length === 0) return this.note('there are no tokens; run `svc tokens create` to create a token')
    for (const line of table([HEAD, ...all.map(cells)])) this.print(line)
  }
}

function cells({ id, name, scopes, created, expires, used }: TokenShown): string[] {
  const end = Date.parse(expires) <= Date.now() ? `${expires} (expired)` : expires
  return [id, name, scopes.join(' '), created, end, used ?? 'never']
}

function table(rows: readonly (readonly string[])[]): string[] {
  const widths = HEAD.map((_, column) => Math.max(...rows.map(row => row[column]!.length)))
  return rows.map(row =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd()
  )
}
