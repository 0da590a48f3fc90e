import { Args, Flags, hiddenQuestion, JSON_FLAG, SvcCommand, table, usageError } from '@svc/cli/command'
import type { SecretInfo } from '@svc/core/contracts'
import { openSecrets, printStored, infoRecord, referencePlaces } from './commands/shared.ts'
import { secretUnknown, valueInvalid } from './errors.ts'
import { MAX_VALUE_BYTES, withoutLastBreak } from './sources.ts'

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

const HEAD = ['NAME', 'SOURCE', 'STATE', 'CHANGED', 'KEY', 'READ BY']

/** `svc secrets list`: lists the secrets without their values, with the plugins and settings that use them. */
export class SecretsList extends SvcCommand {
  static override summary = 'List the secrets without their values, with the plugins and settings that use them'
  static override examples = ['<%= config.bin %> <%= command.id %>']
  static override flags = JSON_FLAG

  async run(): Promise<void> {
    const { flags } = await this.parse(SecretsList)
    const { secrets, ctx } = await openSecrets(this, 'list')
    const all = await secrets.list(ctx)
    const granted = await this.granted('secrets')
    const places = referencePlaces(await this.setting())
    const readers = ({ name }: SecretInfo) => ({
      plugins: granted.flatMap(({ plugin, names }) => (names.includes(name) ? [plugin] : [])),
      settings: places.flatMap(([item, path]) => (item === name ? [path] : [])),
    })
    if (flags.json) {
      const shown = all.map(info => ({ ...infoRecord(info), ...readers(info) }))
      return this.print(JSON.stringify({ secrets: shown }))
    }
    if (all.length === 0) return this.note('there are no secrets; run `svc secrets set <name>` to store a secret')
    const cells = (info: SecretInfo) => {
      const { plugins, settings } = readers(info)
      const changed = info.changedAt === undefined ? '' : new Date(info.changedAt).toISOString()
      const by = [...plugins, ...settings.map(path => `setting ${path}`)].join(', ')
      return [info.name, info.source, info.state, changed, info.keyId ?? '', by === '' ? 'nothing' : by]
    }
    this.print(table([HEAD, ...all.map(cells)]))
  }
}

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

export const COMMANDS = {
  'secrets:list': SecretsList,
  'secrets:remove': SecretsRemove,
  'secrets:rotate': SecretsRotate,
  'secrets:set': SecretsSet,
}

// --- the value of a secret ---

const LINE_BREAK_BYTES = 2

/** Refuses a value on the command line, without repeating it. Throws COMMAND_LINE_INVALID. */
function refuseValue(words: readonly unknown[]): void {
  if (words.length > 1)
    throw usageError('COMMAND_LINE_INVALID', 'the value must come from standard input: other users can read the command line', {
      hint: 'Run the command with the name alone and enter the value. If the value was a real one, replace it: it is in the history of the shell',
    })
}

/**
 * Reads a value from standard input, without the line break at its end. At a terminal, it asks without showing the answer. Throws
 * SECRET_INVALID.
 */
async function readValue(name: string, signal: AbortSignal): Promise<string> {
  const value = process.stdin.isTTY ? await hiddenQuestion(`Value of ${name} (not shown): `, signal) : await readPipe(signal)
  return withoutLastBreak(value)
}

async function readPipe(signal: AbortSignal): Promise<string> {
  const pieces: Buffer[] = []
  let length = 0
  const stop = () => void process.stdin.destroy()
  signal.addEventListener('abort', stop, { once: true })
  try {
    for await (const piece of process.stdin as AsyncIterable<Buffer>) {
      pieces.push(piece)
      length += piece.length
      if (length > MAX_VALUE_BYTES + LINE_BREAK_BYTES)
        throw valueInvalid(`has more than ${MAX_VALUE_BYTES} bytes`, 'Keep it in a file, and name the file under secrets.sources')
    }
    signal.throwIfAborted()
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.concat(pieces))
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof TypeError) throw valueInvalid('is not UTF-8', 'Encode bytes as Base64')
    throw error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}
