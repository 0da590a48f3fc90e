import { fileURLToPath } from 'node:url'
import { type Interfaces, Plugin } from '@oclif/core'
import { svcError } from '@svc/core'
import type { CommandContext } from '@svc/core/contracts'
import { isParseError, parseMessage } from './errors.ts'
import type { RunnableCommand } from './svc-command.ts'

/** The result of a command in a test. */
export interface CommandRun {
  readonly code: number
  /** Lines of `print`. */
  readonly out: readonly string[]
  /** Lines of `note`. */
  readonly err: readonly string[]
}

/**
 * Runs a command class in a test: `await runCommand(Words, ['one two', '--json'])`. `given` replaces parts of its context. By
 * default it has no host, server or configuration, and the home is ''. Throws the error of the command, and
 * COMMAND_LINE_INVALID.
 */
export async function runCommand(
  command: RunnableCommand,
  argv: readonly string[] = [],
  given: Partial<CommandContext> = {}
): Promise<CommandRun> {
  const [out, err]: [string[], string[]] = [[], []]
  command.given = {
    signal: new AbortController().signal,
    home: '',
    cwd: process.cwd(),
    print: line => void out.push(line),
    note: line => void err.push(line),
    setting: async () => undefined,
    host: () => Promise.reject(new Error('this test provides no host')),
    server: async () => undefined,
    unconfigured: async () => [],
    granted: async () => [],
    ...given,
  }
  const before = process.exitCode
  try {
    const code = (await command.run([...argv], await oclifConfig()).catch(asUsageError)) as number | undefined
    return { code: code ?? 0, out, err }
  } finally {
    // oclif sets the exit code of this process when the command throws
    process.exitCode = before
  }
}

/** Converts oclif's error about a command line. */
function asUsageError(error: unknown): never {
  if (!isParseError(error)) throw error
  throw svcError('COMMAND_LINE_INVALID', parseMessage(error), { cause: error })
}

/** A configuration of oclif without a command line: a program "svc" without commands. */
export async function oclifConfig(): Promise<Interfaces.LoadOptions> {
  const root = fileURLToPath(new URL('.', import.meta.url))
  const pjson = { name: 'svc', version: '0.0.0', oclif: { bin: 'svc', topicSeparator: ' ' } }
  const plugin = new Plugin({ root, isRoot: true, ignoreManifest: true, pjson: pjson as never })
  await plugin.load()
  return { root, plugins: new Map([[plugin.name, plugin]]) }
}
