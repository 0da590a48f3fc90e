import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Command, type Interfaces, Plugin } from '@oclif/core'
import {
  type CommandFacts,
  completableFacts,
  completableText,
  describeCommands,
  importCommands,
  safeFacts,
  safeText,
} from './command-manifest.ts'
import type { CommandSource } from './contributed.ts'
import { COMPLETION, DESCRIPTION, SUMMARIES, TOPICS } from './summaries.ts'

type Pjson = Interfaces.PJSON
/** A command as oclif takes it from a plugin: its help, and how to load its class. */
type Loadable = Command.Loadable

const isSource = import.meta.url.endsWith('.ts')
const ROOT = fileURLToPath(new URL('..', import.meta.url))
const TARGET = fileURLToPath(new URL(isSource ? './commands.ts' : './commands.js', import.meta.url))

interface Made {
  readonly name: string
  readonly version: string
  readonly root: string
  readonly topics: Readonly<Record<string, string>>
  readonly pjson: Pjson
  readonly hooks?: Interfaces.Plugin['hooks']
  readonly commands: readonly Loadable[]
}

/** An oclif plugin whose commands come from a manifest. */
function pluginOf({ name, version, root, topics, pjson, hooks = {}, commands }: Made): Interfaces.Plugin {
  const findCommand = async (id: string) => commands.find(command => command.id === id)?.load()
  return {
    _base: '',
    name,
    alias: name,
    version,
    root,
    pjson,
    hooks,
    topics: Object.entries(topics).map(([topic, description]) => ({ name: topic, description })),
    commands: [...commands],
    commandIDs: commands.map(command => command.id),
    commandsDir: undefined,
    findCommand: findCommand as Interfaces.Plugin['findCommand'],
    load: async () => {},
    hasManifest: true,
    isRoot: root === ROOT,
    moduleType: 'module',
    options: { root },
    type: root === ROOT ? 'core' : 'user',
    valid: true,
  }
}

/**
 * svc itself. Reads its commands from the manifest of the build, in a checkout from the classes. Leaves out commands that
 * `others` bring.
 */
export async function ownPlugin(others: readonly Interfaces.Plugin[]): Promise<Interfaces.Plugin> {
  const pjson = JSON.parse(readFileSync(`${ROOT}package.json`, 'utf8')) as Pjson
  const { name, version } = pjson
  const facts = isSource ? await describeCommands({ plugin: name, version, target: TARGET }) : builtFacts()
  const load = async (id: string) => (await importCommands({ target: TARGET }))[id]!
  const hook = isSource ? './src/command-not-found.ts' : './dist/command-not-found.js'
  return pluginOf({
    name,
    version,
    root: ROOT,
    topics: TOPICS,
    pjson: { ...pjson, oclif: { ...pjson.oclif, description: DESCRIPTION } },
    hooks: { command_not_found: [{ target: hook, identifier: 'commandNotFound' }] },
    commands: Object.entries(SUMMARIES)
      .filter(([id]) => !others.some(other => other.commandIDs.includes(id)))
      .map(([id, summary]) =>
        loadable(id, name, facts[id] ?? { ...NOTHING, summary }, async () => Object.assign(await load(id), { id }))
      ),
  })
}

const builtFacts = () => JSON.parse(readFileSync(`${dirname(TARGET)}/commands.json`, 'utf8')) as CommandFacts

/** Loads the class of a contributed command. */
export type LoadCommand = (source: CommandSource, id: string) => Promise<Command.Class>

/**
 * The commands of a plugin as an oclif plugin. Imports the plugin's code only to run a command, or if no manifest describes it.
 */
export async function contributedPlugin(
  source: CommandSource,
  argv: readonly string[],
  load: LoadCommand
): Promise<Interfaces.Plugin> {
  const { plugin: name, version, folder: root, topics, ids } = source
  // help shows no other commands, and completion needs all
  const isMeant = meantBy(argv)
  const facts = ids.some(isMeant) ? (source.facts() ?? (await describe(source).catch(() => UNDESCRIBED))) : {}
  const isCompleted = argv[0] === COMPLETION
  const isRoot = firstWord(argv) === undefined
  const safe = (text: string, words: string) => (isCompleted ? completableText(text) : safeText(text, words))
  const commands = ids.map(id => {
    const found = (isMeant(id) ? safeFacts(isRoot ? summaryOf(facts, id) : facts, id) : undefined) ?? {
      ...UNKNOWN,
      summary: safe(`Comes with ${name}`, id),
    }
    return loadable(id, name, isCompleted ? completableFacts(found) : found, () => load(source, id))
  })
  const shown = Object.fromEntries(Object.entries(topics).map(([topic, text]) => [topic, safe(String(text), topic)]))
  return pluginOf({ name, version, root, topics: shown, pjson: { name, version, oclif: {} } as unknown as Pjson, commands })
}

const NOTHING = { args: {}, flags: {}, hidden: false }
/** If a module cannot be imported, help leaves it out, and running its commands reports the error. */
const UNDESCRIBED: CommandFacts = {}
/** A command without a description takes any arguments, so that it runs and reports the error. */
const UNKNOWN = { ...NOTHING, strict: false }

function loadable(id: string, plugin: string, facts: CommandFacts[string], load: () => Promise<Command.Class>): Loadable {
  const own = { id, aliases: [], hiddenAliases: [], pluginName: plugin, pluginAlias: plugin, pluginType: 'core', load }
  return { ...facts, ...own }
}

/** Describes in the sandbox if the plugin is isolated. Installed plugins were described at their installation. */
async function describe(source: CommandSource): Promise<CommandFacts> {
  const { withTimeout } = await import('@svc/core')
  if (source.permissions === undefined) return withTimeout(DESCRIBE_MS, () => describeCommands(source))
  const { describeInProcess } = await import('./command-process.ts')
  return describeInProcess(source, {}, DESCRIBE_MS)
}

/** Limit of the import of a module for help. */
const DESCRIBE_MS = 10_000

/** The commands that help shows: root help lists commands of one word, and only one line for each topic. */
function meantBy(argv: readonly string[]): (id: string) => boolean {
  const first = firstWord(argv)
  if (first === COMPLETION) return () => true
  return id => (first === undefined ? !id.includes(':') : id.split(':')[0] === first)
}

const firstWord = (argv: readonly string[]): string | undefined => argv.find(word => !word.startsWith('-'))

/** The facts of one command that root help shows: it is faster without a check of all others. */
function summaryOf(facts: CommandFacts, id: string): CommandFacts {
  if (!Object.hasOwn(Object(facts), id)) return {}
  const { summary, description, hidden, state } = Object(facts[id]) as CommandFacts[string]
  return { [id]: { ...NOTHING, summary, description, hidden, state } as CommandFacts[string] }
}

/** oclif's plugin for completion. */
export async function completionPlugin(): Promise<Interfaces.Plugin> {
  const plugin = new Plugin({ name: '@oclif/plugin-autocomplete', root: ROOT, type: 'core' })
  await plugin.load()
  return plugin
}
