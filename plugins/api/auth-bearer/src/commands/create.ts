import { systemContext } from '@svc/core'
import { Store } from '@svc/core/contracts'
import { Flags, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { storeForgets } from '../errors.ts'
import { nameOf, SCOPES, scopesOf, ttlOf } from '../line.ts'
import { createTokens } from '../tokens.ts'

/** `svc tokens create`: prints a new token, once; running servers take it at once. */
export class TokensCreate extends SvcCommand {
  static override summary = 'Make an access token for the API'
  static override description = 'The token is shown this once; running servers take it at once.'
  static override examples = ['<%= config.bin %> <%= command.id %> --name ci --scope chat,read --ttl 12h']
  static override flags = {
    name: Flags.string({ summary: 'Name shown in lists and logs (default: its id)', helpValue: '<name>' }),
    scope: Flags.string({
      summary: `What it allows, several with commas: ${SCOPES.join(', ')} (default: all but admin)`,
      helpValue: '<scope>',
      multiple: true,
      multipleNonGreedy: true,
    }),
    ttl: Flags.string({ summary: 'How long it is valid, up to 3650d: 30d, 12h, 90m', helpValue: '<time>', default: '30d' }),
    ...JSON_FLAG,
  }

  async run(): Promise<void> {
    const { flags } = await this.parse(TokensCreate)
    const named = flags.name === undefined ? {} : { name: nameOf(flags.name) }
    const wish = { ...named, scopes: scopesOf(flags.scope), ttlMs: ttlOf(flags.ttl) }
    const ctx = systemContext(this.signal, 'svc tokens create')
    const store = (await this.host()).service(Store)
    const { durable, kind } = await store.probe(ctx)
    if (!durable) throw storeForgets(kind)
    const tokens = createTokens(store)
    await tokens.open(ctx)
    const { token, shown } = await tokens.make(wish, ctx)
    if (flags.json) return this.print(JSON.stringify({ token, ...shown }))
    this.print(token)
    this.note(`${shown.id} (${shown.name}): ${shown.scopes.join(' ')}, until ${shown.expires}. The token is shown this once.`)
  }
}
