import { systemContext } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { Args, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { createTokens } from '../tokens.ts'

/** `svc tokens revoke <token>`: returns when no worker of any server accepts the token any more. */
export class TokensRevoke extends SvcCommand {
  static override summary = 'Revoke an access token at once'
  static override examples = ['<%= config.bin %> <%= command.id %> ci']
  static override args = { token: Args.string({ description: 'Name or id of the token', required: true, ignoreStdin: true }) }
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { args, flags } = await this.parse(TokensRevoke)
    const ctx = systemContext(this.signal, 'svc tokens revoke')
    const tokens = createTokens((await this.host()).service(Store))
    await tokens.open(ctx)
    const revoked = await tokens.revoke(args.token, ctx)
    if (flags.json) return this.print(JSON.stringify({ revoked }))
    for (const { id, name } of revoked) this.print(`revoked ${id} (${name})`)
  }
}
