import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { flush, run } from '@oclif/core'
import { codeOf, messageOf } from '@svc/core'
import { readConfigFlag } from './config-flag.ts'
import { commandsFor, contributedTopics } from './contributed.ts'
import { commandLineInvalid, isUsage } from './errors.ts'
import { printError } from './report-error.ts'
import { DESCRIPTION, SUMMARIES, TOPICS } from './summaries.ts'

const USAGE = 2

/** Runs the command line through oclif; resolves with the exit code: 2 when the command line itself is wrong. */
export async function runOclif(argv: string[]): Promise<number> {
  try {
    await run(argv, { root: fileURLToPath(new URL('..', import.meta.url)), pjson: await manifest(argv) })
    await flush()
    return Number(process.exitCode ?? 0)
  } catch (error) {
    return await endOf(error, argv)
  }
}

/** The package's own, with the commands that lie beside this very file: sources in the repository, `dist` in the package. */
async function manifest(argv: readonly string[]) {
  const pkg = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    name: string
    version: string
    oclif: object
  }
  const target = import.meta.url.endsWith('.ts') ? './src/commands.ts' : './dist/commands.js'
  const topics = {
    ...contributedTopics(await commandsFor(argv, readConfigFlag(process.argv.slice(2)).file)),
    ...TOPICS,
  }
  const commands = { strategy: 'explicit' as const, target, identifier: 'COMMANDS' }
  return { ...pkg, oclif: { ...pkg.oclif, description: DESCRIPTION, topics, commands } }
}

/** The ids of all commands; those of plugins are asked for where none of svc's own can be meant. */
const knownTo = async (argv: readonly string[]) => [
  ...Object.keys(SUMMARIES),
  ...(await commandsFor(argv, readConfigFlag(process.argv.slice(2)).file)).map(one => one.id),
]

/** Exit code 2 is for the command line itself; what oclif throws carries its code, an ordinary failure does not. */
async function endOf(error: unknown, argv: readonly string[]): Promise<number> {
  const exit = (error as { oclif?: { exit?: number } }).oclif?.exit
  if (codeOf(error) === 'EEXIT') return exit ?? 0
  printError(
    exit === USAGE
      ? commandLineInvalid(messageOf(error).replace(/\nSee more help with --help$/, ''), argv, await knownTo(argv))
      : error
  )
  return exit ?? (isUsage(codeOf(error)) ? USAGE : 1)
}
