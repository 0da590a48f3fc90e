import { Args, JSON_FLAG, SvcCommand } from '@svc/cli/command'
import { openSecrets } from './open.ts'
import { printStored } from './stored.ts'
import { readValue, refuseValue } from './value-input.ts'

/** `svc secrets set <name>`: seals the value of standard input and stores it. */
export class SecretsSet extends SvcCommand {
  static override summary = 'Store a secret; the value comes from standard input'
  static override description =
    'At a terminal, the command asks for the value and does not show it. One line break at the end is not part of the value. A running server uses the new value at once.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> db_password < password.txt',
    'openssl rand -hex 32 | <%= config.bin %> <%= command.id %> webhook_key',
  ]
  static override args = { name: Args.string({ description: 'Name of the secret', required: true, ignoreStdin: true }) }
  static override flags = JSON_FLAG
  // oclif would repeat a value in its error
  static override strict = false

  async run(): Promise<void> {
    const { args, argv, flags } = await this.parse(SecretsSet)
    refuseValue(argv)
    const { secrets, ctx } = await openSecrets(this, 'set')
    const info = await secrets.set(args.name, await readValue(args.name, this.signal), ctx)
    await printStored(this, info, flags.json)
  }
}
