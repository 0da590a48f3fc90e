import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Command, Plugin } from '@oclif/core'
import { withHostPackages } from '@svc/core/config'
import { clipped, visibleLines } from './command/text.ts'

/** The facts that help and completion show of a command, in the form of oclif's manifest. */
type Facts = Pick<
  Command.Cached,
  'args' | 'description' | 'examples' | 'flags' | 'hidden' | 'state' | 'strict' | 'summary' | 'usage'
>

/** Facts by the id of the command. Plain data. */
export type CommandFacts = Readonly<Record<string, Facts>>

/** A module of command classes. */
export interface CommandModule {
  readonly plugin: string
  readonly version: string
  /** Path of the module. */
  readonly target: string
}

/**
 * Imports the classes of a module, by command id. Throws the error of the import, and a TypeError if the module exports no
 * COMMANDS.
 */
export async function importCommands({
  target,
}: Pick<CommandModule, 'target'>): Promise<Readonly<Record<string, Command.Class>>> {
  const place = pathToFileURL(target).href
  const { COMMANDS } = (await withHostPackages(() => import(place), { place, isOfCommands: true })) as { COMMANDS?: unknown }
  if (typeof COMMANDS !== 'object' || COMMANDS === null) throw new TypeError('it exports no COMMANDS')
  return COMMANDS as Record<string, Command.Class>
}

/** Imports the classes of a module and describes them with oclif. Throws as `importCommands` does. */
export async function describeCommands(module: CommandModule): Promise<CommandFacts> {
  const { plugin: name, version, target } = module
  await importCommands(module)
  const root = dirname(target)
  const commands = { strategy: 'explicit' as const, target, identifier: 'COMMANDS' }
  const pjson = { name, version, type: 'module', oclif: { bin: 'svc', topicSeparator: ' ', commands } }
  const plugin = new Plugin({
    root,
    pjson: pjson as never,
    isRoot: true,
    ignoreManifest: true,
    errorOnManifestCreate: true,
    respectNoCacheDefault: true,
  })
  await plugin.load()
  return JSON.parse(
    JSON.stringify(Object.fromEntries(plugin.commands.map(command => [command.id, factsOf(command)])))
  ) as CommandFacts
}

type Tree = Readonly<Record<string, unknown>>
const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null && !Array.isArray(value)
const isText = (value: unknown) => value === undefined || typeof value === 'string'
const isSwitch = (value: unknown) => value === undefined || typeof value === 'boolean'
const areNames = (value: unknown) =>
  value === undefined || (Array.isArray(value) && value.every(item => typeof item === 'string'))
const areNamesOrText = (value: unknown) => isText(value) || areNames(value)
const isExample = (value: unknown) => typeof value === 'string' || (isTree(value) && Object.values(value).every(isText))
const areTexts = (value: unknown) => isText(value) || (Array.isArray(value) && value.every(isExample))
const isPlain = (value: unknown) => value === null || ['undefined', 'string', 'number', 'boolean'].includes(typeof value)
const isDefault = (value: unknown) => isPlain(value) || (Array.isArray(value) && value.every(isPlain))

type Form = Readonly<Record<string, (value: unknown) => boolean>>

const COMMAND: Form = {
  args: isTree,
  flags: isTree,
  description: isText,
  examples: areTexts,
  hidden: isSwitch,
  state: isText,
  strict: isSwitch,
  summary: isText,
  usage: areTexts,
}
const ARGUMENT: Form = {
  name: isText,
  default: isDefault,
  description: isText,
  hidden: isSwitch,
  multiple: isSwitch,
  options: areNames,
  required: isSwitch,
}
/**
 * The facts of a flag that oclif's help and completion read. Without `hasDynamicHelp`, for which help would import the plugin.
 */
const FLAG: Form = {
  name: isText,
  type: value => value === 'boolean' || value === 'option',
  allowNo: isSwitch,
  char: isText,
  combinable: areNames,
  default: isDefault,
  delimiter: isText,
  dependsOn: areNames,
  description: isText,
  env: isText,
  exclusive: areNames,
  helpGroup: isText,
  helpLabel: isText,
  helpValue: areNamesOrText,
  hidden: isSwitch,
  multiple: isSwitch,
  noCacheDefault: isSwitch,
  options: areNames,
  required: isSwitch,
  summary: isText,
}

/** The path of a fact with the wrong form, such as `flags.json.summary`; '' if there are no facts. */
export function wrongFact(facts: unknown): string | undefined {
  if (!isTree(facts)) return ''
  const wrong = wrongIn(facts, COMMAND)
  if (wrong !== undefined) return wrong
  return wrongInTable('args', facts.args as Tree, ARGUMENT) ?? wrongInTable('flags', facts.flags as Tree, FLAG)
}

const wrongIn = (value: Tree, form: Form) => Object.keys(form).find(key => !form[key]!(value[key]))

function wrongInTable(table: string, entries: Tree, form: Form): string | undefined {
  for (const [name, entry] of Object.entries(entries)) {
    if (!NAME.test(name)) continue // `safeFacts` removes it
    if (!isTree(entry)) return `${table}.${name}`
    const wrong = wrongIn(entry, form)
    if (wrong !== undefined) return `${table}.${name}.${wrong}`
  }
  return undefined
}

const only = <T>(table: Readonly<Record<string, T>>, form: Form) =>
  Object.fromEntries(
    Object.entries(table).map(([name, item]) => [
      name,
      Object.fromEntries(Object.entries(item as object).filter(([key]) => Object.hasOwn(form, key))),
    ])
  ) as Record<string, T>

const factsOf = ({ args, description, examples, flags, hidden, state, strict, summary, usage }: Command.Cached): Facts => ({
  args: only(args, ARGUMENT),
  flags: only(flags, FLAG),
  hidden,
  ...(description === undefined ? {} : { description }),
  ...(examples === undefined ? {} : { examples }),
  ...(state === undefined ? {} : { state }),
  ...(strict === undefined ? {} : { strict }),
  ...(summary === undefined ? {} : { summary }),
  ...(usage === undefined ? {} : { usage }),
})

/**
 * Makes the facts of a plugin safe to show. oclif's help runs `<% %>` in texts as code in this process, so only the two usual
 * names are replaced, and all other marks are broken up. Control characters are made visible.
 */
export function safeFacts(facts: CommandFacts, id: string): Facts | undefined {
  if (!isTree(facts) || !Object.hasOwn(facts, id) || wrongFact(facts[id]) !== undefined) return undefined
  const words = id.replaceAll(':', ' ')
  const safe = (value: unknown): unknown => {
    if (typeof value === 'string') return safeText(clipped(value, LONGEST), words)
    if (Array.isArray(value)) return value.map(safe)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).flatMap(([key, item]) => (NAME.test(key) ? [[key, safe(item)]] : [])))
  }
  const found = safe(facts[id]) as Command.Cached // `wrongFact` has checked its form
  return factsOf({ ...found, flags: Object.fromEntries(Object.entries(found.flags).map(namedFlag)) })
}

/** Limit of a text in help, in characters. */
const LONGEST = 4000

/** Keeps only the one name of a flag that `NAME` allows. */
const namedFlag = ([name, { char, ...flag }]: [string, Command.Cached['flags'][string]]) =>
  [name, { ...flag, name, ...(/^[A-Za-z]$/.test(String(char)) ? { char } : {}) }] as [string, Command.Cached['flags'][string]]

/**
 * Makes safe facts fit for completion scripts. oclif writes texts and options into zsh and PowerShell code and escapes few
 * characters. Texts keep letters, digits and harmless marks; options with other characters are removed.
 */
export function completableFacts(facts: Facts): Facts {
  const quiet = (value: unknown): unknown => {
    if (typeof value === 'string') return completableText(value)
    if (Array.isArray(value)) return value.map(quiet)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, key === 'options' ? choices(item) : quiet(item)]))
  }
  return quiet(facts) as Facts
}

export const completableText = (text: string): string => text.replaceAll(/[^\p{L}\p{N} .,:;/_=+@%'()-]+/gu, ' ')

const choices = (options: unknown) =>
  Array.isArray(options) ? options.filter(option => /^[\w.@/+=-]+$/.test(String(option))) : undefined

/** Names of flags, arguments and their facts. */
const NAME = /^[\w.-]+$/

/** A text of a plugin that is safe in the help of this command or topic. */
export const safeText = (text: string, words: string) =>
  visibleLines(text)
    .replaceAll(/<%[-=]\s*config\.bin\s*%>/g, 'svc')
    .replaceAll(/<%[-=]\s*command\.id\s*%>/g, words)
    .replaceAll('<%', '< %')
    .replaceAll('%>', '% >')
    .replaceAll(/^%|%$/g, ' % ')

/** Imports the class of a command and sets its id. Throws COMMAND_BROKEN. */
export async function commandClass(module: Pick<CommandModule, 'plugin' | 'target'>, id: string): Promise<Command.Class> {
  const broken = async (cause: unknown) => {
    // help and completion need this file, but not the kernel, which the errors load
    const { commandBroken } = await import('./errors.ts')
    return commandBroken(id.replaceAll(':', ' '), module.plugin, cause)
  }
  const commands = await importCommands(module).catch(async (error: unknown) => {
    throw await broken(error)
  })
  const found = Object.hasOwn(commands, id) ? commands[id] : undefined
  if (typeof found?.run !== 'function') throw await broken(new TypeError(`COMMANDS has no class "${id}"`))
  return Object.assign(found, { id })
}
