import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { LocatedPlugin } from '../loading/load.ts'
import { COMMANDS_MODULE, commandsOf, placeIn, slotsOf } from '../loading/manifest.ts'
import type { Plugin } from '../src/plugin.ts'
import type { SvcError } from '../src/errors.ts'
import { commandsMissing, commandTaken, slotUnknown } from './errors.ts'

/** Names that the program knows besides its plugins. */
export interface KnownNames {
  /** Slots that manifests can name although no loaded plugin reads them. Absent: manifests can name any slot. */
  readonly slots?: readonly string[]
  /**
   * Reserved first words of commands (one or two words), and the plugin that can use them, or another name for the program
   * itself.
   */
  readonly commands?: Readonly<Record<string, string>>
}
interface Declared {
  readonly name: string
  readonly found: LocatedPlugin
  readonly plugin: Plugin
}
interface Claim {
  readonly plugin: Declared
  readonly words: string
  /** The position in the list. */
  readonly index: number
}

/** Reports unknown slots, by manifest. */
export async function unknownSlots(plugins: readonly Declared[], { slots }: KnownNames): Promise<SvcError[]> {
  if (slots === undefined) return []
  const read = plugins.flatMap(({ plugin }) => Object.values(plugin.requires).filter(token => token.what === 'slot'))
  const known = [...new Set([...slots, ...read.map(token => token.name)])].sort()
  const strange = plugins.flatMap(plugin =>
    slotsOf(plugin.found.manifest).flatMap(([slot]) => (known.includes(slot) ? [] : [{ plugin, slot }]))
  )
  return Promise.all(strange.map(async ({ plugin, slot }) => slotUnknown(plugin.name, slot, known, await placeOf(plugin, slot))))
}

/** Reports commands that cannot run: the module is missing or the name is taken. */
export async function brokenCommands(plugins: readonly Declared[], { commands = {} }: KnownNames): Promise<SvcError[]> {
  const claims = plugins.flatMap(plugin =>
    commandsOf(plugin.found.manifest).map((words, index): Claim => ({ plugin, words, index }))
  )
  const taken = claims.map(async ({ plugin, words, index }, at) => {
    const other = claims.slice(0, at).find(claim => claim.words === words)
    const begins = [words.split(' ', 1), words.split(' ', 2)].map(begin => begin.join(' '))
    const owner = begins.flatMap(begin => (Object.hasOwn(commands, begin) ? [commands[begin]] : []))[0]
    const by = owner === undefined || owner === plugin.name ? other?.plugin.name : owner
    return by === undefined ? [] : [commandTaken(plugin.name, words, by, await placeOf(plugin, 'commands', String(index)))]
  })
  const without = plugins.filter(plugin => commandsOf(plugin.found.manifest).length > 0 && !hasCommands(plugin.found))
  const missing = without.map(async plugin => commandsMissing(plugin.name, await placeOf(plugin, 'commands')))
  return [...(await Promise.all(taken)).flat(), ...(await Promise.all(missing))]
}

/** Whether the package exports an existing commands module. Nothing of it runs. */
function hasCommands({ name, folder }: LocatedPlugin): boolean {
  if (folder === undefined) return true
  try {
    return existsSync(createRequire(join(folder, 'package.json')).resolve(join(name, COMMANDS_MODULE)))
  } catch {
    return false
  }
}

const placeOf = ({ found: { folder } }: Declared, ...keys: readonly string[]) =>
  folder === undefined ? Promise.resolve('the manifest') : placeIn(folder, ['svc', 'contributes', ...keys])
