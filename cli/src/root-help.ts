import { readFileSync } from 'node:fs'
import { styleText } from 'node:util'
import { commandsFor, type Contributed, contributedTopics } from './contributed.ts'
import { DESCRIPTION, SUMMARIES, TOPICS } from './summaries.ts'

const WIDTH = 80

/**
 * Prints what oclif would, word for word, without loading it: that alone would take longer than all the rest. Answers false where it does not know how
 * oclif would lay it out (a narrow terminal, long summaries, a plugin's command that is a topic too).
 */
export async function printRootHelp(out: NodeJS.WriteStream, config?: string): Promise<boolean> {
  const others = await commandsFor(['--help'], config)
  const commands = [...Object.entries(SUMMARIES), ...others.map(one => [one.id, one.summary] as const)].filter(
    ([id]) => !id.includes(':')
  )
  const topics = topicsOf(others)
  const help = helpText(out, commands, topics)
  const isPlain =
    help.split('\n').every(line => line.length <= WIDTH) &&
    others.every(one => !/[<\n]/.test(one.id + one.summary)) &&
    topics.every(([topic]) => topic in TOPICS || commands.every(([id]) => id !== topic))
  if (!isPlain || process.env.OCLIF_COLUMNS || (out.isTTY && out.columns < WIDTH)) return false
  out.write(help)
  return true
}

type Entry = readonly [name: string, words: string]

/** The topics of svc, and those that commands of plugins make. */
const topicsOf = (others: readonly Contributed[]): Entry[] =>
  Object.entries({ ...contributedTopics(others), ...TOPICS }).map(([topic, { description }]) => [topic, description])

function helpText(out: NodeJS.WriteStream, commands: readonly Entry[], topics: readonly Entry[]): string {
  const section = (head: string, lines: readonly string[]) =>
    [styleText('bold', head, { stream: out }), ...lines.map(line => `  ${line}`), ''].join('\n')
  const { name, version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as {
    name: string
    version: string
  }
  const parts = [
    `${DESCRIPTION}\n`,
    section('VERSION', [`${name}/${version} ${process.platform}-${process.arch} node-${process.version}`]),
    section('USAGE', ['$ svc [COMMAND]']),
    section('TOPICS', listOf(topics)),
    section('COMMANDS', listOf(commands)),
  ]
  return `${parts.join('\n')}\n`
}

function listOf(entries: readonly Entry[]): string[] {
  const sorted = entries.toSorted(([a], [b]) => a.localeCompare(b))
  const width = Math.max(...sorted.map(([name]) => name.length))
  return sorted.map(([name, words]) => `${name.padEnd(width)}  ${words}`)
}
