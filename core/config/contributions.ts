import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Found } from '../loading/load.ts'
import { commandsOf, placeIn, slotsOf } from '../loading/manifest.ts'
import type { Plugin } from '../src/plugin.ts'
import type { SvcError } from '../src/svc-error.ts'
import { commandMissing, commandTaken, slotUnknown } from './errors.ts'

/** What the program knows besides its plugins. */
export interface KnownNames {
  /** Slots that may be added to although no loaded plugin reads them; absent: manifests may name any. */
  readonly slots?: readonly string[]
  /** What the program's own commands begin with: a word, or two of a topic that others may add to. */
  readonly commands?: readonly string[]
}
interface Declared {
  readonly name: string
  readonly found: Found
  readonly plugin: Plugin
}
interface Claim {
  readonly one: Declared
  /** The key below `contributes`. */
  readonly name: string
  readonly words: string
  readonly module: string
}

/** Slots that nobody knows, by manifest. */
export async function unknownSlots(plugins: readonly Declared[], { slots }: KnownNames): Promise<SvcError[]> {
  if (slots === undefined) return []
  const read = plugins.flatMap(({ plugin }) => Object.values(plugin.requires).filter(token => token.what === 'slot'))
  const known = [...new Set([...slots, ...read.map(token => token.name)])].sort()
  const strange = plugins.flatMap(one =>
    slotsOf(one.found.manifest).flatMap(([slot]) => (known.includes(slot) ? [] : [{ one, slot }]))
  )
  return Promise.all(strange.map(async ({ one, slot }) => slotUnknown(one.name, slot, known, await placeOf(one, slot))))
}

/** Commands that nobody could run: the module is not there, or the name is another's. */
export async function brokenCommands(plugins: readonly Declared[], { commands = [] }: KnownNames): Promise<SvcError[]> {
  const claims = plugins.flatMap(one =>
    commandsOf(one.found.manifest).map(([name, words, { module }]): Claim => ({ one, name, words, module }))
  )
  const faults = claims.map(async ({ one, name, words, module }, at) => {
    const where = () => placeOf(one, 'commands', name)
    const other = claims.slice(0, at).find(claim => claim.words === words)
    const begins = [words.split(' ', 1), words.split(' ', 2)].map(begin => begin.join(' '))
    const by = begins.some(begin => commands.includes(begin)) ? 'svc' : other?.one.name
    const isThere = hasModule(one.found, module)
    return [
      ...(by === undefined ? [] : [commandTaken(one.name, words, by, await where())]),
      ...(isThere ? [] : [commandMissing(one.name, words, module, await where())]),
    ]
  })
  return (await Promise.all(faults)).flat()
}

/** A module is a file of the package, or a key of its `exports`. Nothing of it runs. */
function hasModule({ name, folder }: Found, module: string): boolean {
  if (folder === undefined || existsSync(join(folder, module))) return true
  try {
    return existsSync(createRequire(join(folder, 'package.json')).resolve(join(name, module)))
  } catch {
    return false
  }
}

const placeOf = ({ found: { folder } }: Declared, ...keys: readonly string[]) =>
  folder === undefined ? Promise.resolve('the manifest') : placeIn(folder, ['svc', 'contributes', ...keys])
