import { svcError } from '@svc/core'
import type { CommandContext } from '@svc/core/contracts'
import { oclifConfig } from './oclif-config.ts'
import type { RunnableCommand } from './svc-command.ts'
import { usageWords } from './usage-words.ts'

/** What a command did in a test. */
export interface CommandRun {
  readonly code: number
  /** Lines of `print`. */
  readonly out: readonly string[]
  /** Lines of `note`. */
  readonly err: readonly string[]
}

/**
 * Runs a command class in a test, as svc would: `await runCommand(Words, ['one two', '--json'])`. `given` replaces parts of its context; without them there is
 * no host, no configuration, and the home is ''. Throws what the command throws, and COMMAND_LINE_INVALID.
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
    host: () => Promise.reject(new Error('this test gives no host')),
    ...given,
  }
  const before = process.exitCode
  try {
    const code = (await command.run([...argv], await oclifConfig()).catch(asUsageError)) as number | undefined
    return { code: code ?? 0, out, err }
  } finally {
    // oclif sets it to that of what the command throws: the test would end with it
    process.exitCode = before
  }
}

/** What oclif finds wrong with a command line, as svc reports it. */
function asUsageError(error: unknown): never {
  const { oclif } = Object(error) as { oclif?: { exit?: number } }
  if (oclif?.exit !== 2) throw error
  throw svcError('COMMAND_LINE_INVALID', usageWords(error), { cause: error })
}
