import { Args, Flags, JSON_FLAG, SvcCommand, usageError } from '@svc/cli/command'
import { secretUnknown } from '../errors.ts'
import { openSecrets } from './open.ts'
import { printStored } from './stored.ts'
import { readValue, refuseValue } from './value-input.ts'

/** `svc secrets rotate <name>`: replaces a value. `svc secrets rotate --key`: seals all values with the current key. */
export class SecretsRotate extends SvcCommand {
  static override summary = 'Replace the value of a secret, or the key of all'
  static override description =
    'With a name, the command reads the new value like `svc secrets set`; the secret must exist. With --key, it seals all secrets with the first key of secrets.key_file or SVC_SECRETS_KEY; the earlier keys must follow it until the command has ended.'
  static override examples = [
    '<%= config.bin %> <%= command.id %> db_password < password.txt',
    '<%= config.bin %> <%= command.id %> --key',
  ]
  static override args = { name: Args.string({ description: 'Name of the secret', ignoreStdin: true }) }
  static override flags = {
    key: Flags.boolean({ summary: 'Seal all secrets with the current key', default: false }),
    ...JSON_FLAG,
  }
  // oclif would repeat a value in its error
  static override strict = false

  async run(): Promise<void> {
    const { args, argv, flags } = await this.parse(SecretsRotate)
    refuseValue(argv)
    if ((args.name === undefined) !== flags.key)
      throw usageError('COMMAND_LINE_INVALID', 'name one secret, or pass --key', {
        hint: 'Usage: svc secrets rotate <name>, or svc secrets rotate --key',
      })
    const { secrets, ctx } = await openSecrets(this, 'rotate')
    if (args.name === undefined) {
      const { resealed, keyId } = await secrets.reseal(ctx)
      if (flags.json) return this.print(JSON.stringify({ resealed, key_id: keyId }))
      return this.print(`${resealed} secrets sealed with the key ${keyId}; earlier keys can be removed`)
    }
    const { name } = args
    if (!(await secrets.list(ctx)).some(secret => secret.name === name)) throw secretUnknown(name)
    await printStored(this, await secrets.set(name, await readValue(name, this.signal), ctx), flags.json)
  }
}
