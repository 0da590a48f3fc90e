import type { SlotView } from '@svc/core'
import type { Mode, Tool, ToolSpec } from '@svc/core/contracts'
import { toolForbidden, toolUnknown } from './errors.ts'

/** The tools of a turn: by name, and as the model sees them. */
export interface ToolList {
  readonly tools: ReadonlyMap<string, Tool>
  readonly specs: readonly ToolSpec[]
}

const allows = (name: string, mode: Mode | undefined, { effects, modes }: Tool) =>
  (!modes || modes.includes(name)) && (!mode || effects.every(effect => mode.effects.includes(effect)))

/** Gives each turn its tools; what a mode allows is worked out once a change of the slot. */
export function createToolLists(slot: SlotView<Tool>, modes: SlotView<Mode>) {
  let version = -1
  let lists = new Map<string, ToolList>()
  const allowed = (mode: string): ToolList => {
    const now = slot.version + modes.version
    if (now !== version) [version, lists] = [now, new Map()]
    const there = lists.get(mode)
    if (there) return there
    const made = listOf(slot.entries().filter(([, tool]) => allows(mode, modes.get(mode), tool)))
    lists.set(mode, made)
    return made
  }

  // what is made of a list (its JSON for a provider, its tokens) is kept by the list, so a profile has the same one each time
  const choices = new WeakMap<ToolList, WeakMap<readonly string[], ToolList>>()
  const chosen = (all: ToolList, names: readonly string[]): ToolList => {
    const known = choices.get(all) ?? new WeakMap<readonly string[], ToolList>()
    const list = known.get(names) ?? listOf(names.flatMap(name => (all.tools.has(name) ? [[name, all.tools.get(name)!]] : [])))
    choices.set(all, known.set(names, list))
    return list
  }

  /** `asked` wins over the profile's list; neither: all that the mode allows. Throws INVALID_VALUE for a tool that is unknown or forbidden. */
  return function toolsFor(asked: readonly string[] | undefined, profile: readonly string[] | undefined, mode: string): ToolList {
    const all = allowed(mode)
    if (asked) return listOf(asked.map(name => [name, pick(name, all, slot, mode)]))
    return profile ? chosen(all, profile) : all
  }
}

function pick(name: string, all: ToolList, slot: SlotView<Tool>, mode: string): Tool {
  const tool = all.tools.get(name)
  if (tool) return tool
  throw slot.has(name) ? toolForbidden(name, mode, [...all.tools.keys()]) : toolUnknown(name, [...all.tools.keys()])
}

function listOf(entries: readonly (readonly [string, Tool])[]): ToolList {
  const tools = new Map(entries)
  return { tools, specs: [...tools].map(([name, { description, parameters }]) => ({ name, description, parameters })) }
}
