import { Command, type Config, Errors, Flags, type Interfaces } from '@oclif/core'
import type { CommandContext } from '@svc/core/contracts'
import { USAGE } from './errors.ts'

/** A concrete command class. */
export type RunnableCommand = { new (argv: string[], config: Config): BaseCommand } & Pick<typeof BaseCommand, 'run' | 'given'>

/**
 * An oclif command with a context of svc. `static args`, `flags`, `examples`, `summary` and `description` are oclif's. `run`
 * resolves with the exit code; undefined means 0. It has no flags: for commands of svc that read no configuration.
 */
export abstract class BaseCommand extends Command implements CommandContext {
  /** svc sets it before it runs the class. */
  static given?: CommandContext

  get signal(): AbortSignal {
    return this.#context.signal
  }

  get home(): string {
    return this.#context.home
  }

  get cwd(): string {
    return this.#context.cwd
  }

  readonly print: CommandContext['print'] = line => this.#context.print(line)

  readonly note: CommandContext['note'] = line => this.#context.note(line)

  readonly setting: CommandContext['setting'] = (...keys) => this.#context.setting(...keys)

  readonly host: CommandContext['host'] = options => this.#context.host(options)

  readonly server: CommandContext['server'] = choice => this.#context.server(choice)

  readonly unconfigured: CommandContext['unconfigured'] = section => this.#context.unconfigured(section)

  readonly granted: CommandContext['granted'] = permission => this.#context.granted(permission)

  get #context(): CommandContext {
    const { given } = this.ctor as typeof BaseCommand
    if (!given)
      throw new TypeError(`${this.id ?? this.ctor.name} has no context: run it through svc, or with runCommand in a test`)
    return given
  }

  abstract override run(): Promise<number | void>

  /** Parses as oclif does. An error from the `parse` function of an argument or flag is a wrong command line: exit code 2. */
  protected override async parse<
    F extends Interfaces.OutputFlags<Interfaces.FlagInput>,
    B extends Interfaces.OutputFlags<Interfaces.FlagInput>,
    A extends Interfaces.OutputArgs<Interfaces.ArgInput>,
  >(options?: Interfaces.Input<F, B, A>, argv?: string[]): Promise<Interfaces.ParserOutput<F, B, A>> {
    try {
      return await super.parse(options, argv)
    } catch (error) {
      if ((Object(error) as { oclif?: object }).oclif !== undefined) throw error
      throw Object.assign(new Errors.CLIError(error instanceof Error ? error : String(error), { exit: 2 }), { cause: error })
    }
  }
}

/** Base class of the commands of plugins. */
export abstract class SvcCommand extends BaseCommand {
  /** Every command has it: svc finds the plugins through that file before a class runs. */
  static override baseFlags = {
    config: Flags.string({ char: 'c', summary: 'Configuration file', helpValue: '<file>', helpGroup: 'GLOBAL' }),
  }
}

/** Flags of most commands. */
export const JSON_FLAG = { json: Flags.boolean({ summary: 'Print one JSON object', default: false }) }

/** Flag of a command that asks the running server, or the plugins in its own process if none runs. */
export const PORT_FLAG = {
  port: Flags.integer({
    summary: 'Port of the running server, if this home has several',
    helpValue: '<int>',
    min: 1,
    max: 65_535,
  }),
}

/** Flags that exclude a host in the command's own process. */
const OF_SERVER = ['url', 'port']

/** Headers for the server, for authentication schemes other than API keys and tokens. */
export const HEADER_FLAG = {
  header: Flags.string({
    char: 'H',
    summary: 'Header to send to the server; @file reads headers from a file. Repeatable',
    helpValue: "'<name>: <value>'",
    multiple: true,
    multipleNonGreedy: true,
  }),
}

/** Flags of a command that manages a server: `await managedServer(this, flags) ?? await this.host()`. */
export const MANAGED_FLAGS = {
  url: Flags.string({ summary: 'Address of the server, if it runs elsewhere', helpValue: '<url>', exclusive: ['port'] }),
  ...PORT_FLAG,
  ...HEADER_FLAG,
}

/** Flags of a command that works with and without a server: `await this.server(flags) ?? await this.host()`. */
export const SERVER_FLAGS = {
  url: Flags.string({ summary: 'Address of the server', helpValue: '<url>', exclusive: ['port'] }),
  port: Flags.integer({ char: 'p', summary: 'Port of the server on this machine', helpValue: '<int>' }),
  ...HEADER_FLAG,
  local: Flags.boolean({ summary: 'Start the plugins in this process even if a server runs', exclusive: OF_SERVER }),
  config: Flags.string({
    char: 'c',
    summary: 'Configuration file for the plugins in this process',
    helpValue: '<file>',
    exclusive: OF_SERVER,
  }),
}

/** Parses a number of seconds from 0.1 to 3600; other words end the command with 2. */
export function secondsOf(word: string): number {
  const value = Number(word)
  if (!(value >= 0.1 && value <= 3600))
    throw new Errors.CLIError(`Expected seconds from 0.1 to 3600 but received: ${word}`, { exit: USAGE })
  return value
}
