import { Args, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { openSecrets } from './open.ts'
import { referencePlaces } from './uses.ts'

/** `svc secrets remove <name>`: plugins can no longer read the secret. */
export class SecretsRemove extends SvcCommand {
  static override summary = 'Remove a secret from the store'
  static override examples = ['<%= config.bin %> <%= command.id %> db_password']
  static override args = { name: Args.string({ description: 'Name of the secret', required: true, ignoreStdin: true }) }
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SecretsRemove)
    const { secrets, ctx } = await openSecrets(this, 'remove')
    await secrets.remove(args.name, ctx)
    const places = referencePlaces(await this.setting()).flatMap(([name, path]) => (name === args.name ? [path] : []))
    if (places.length > 0) this.note(`take care: ${places.join(', ')} refers to it, so the next start or reload fails`)
    this.print(flags.json ? JSON.stringify({ removed: args.name }) : `removed ${args.name}`)
  }
}
