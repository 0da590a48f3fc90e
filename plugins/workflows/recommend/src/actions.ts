import type { SlotView } from '@svc/core'
import type { Mode, RecommendedAction, TeamDefinition, TeamMember, Tool } from '@svc/core/contracts'
import { unknownWord } from './errors.ts'

const LEVELS = ['trivial', 'low', 'medium', 'high', 'extreme'] as const
type Level = (typeof LEVELS)[number]
const ALIASES: Readonly<Record<string, Level>> = { simple: 'low', moderate: 'medium', complex: 'high', very_high: 'extreme' }

/** By mode, over the levels from trivial to extreme. */
const ACTIONS: Readonly<Record<string, readonly RecommendedAction[]>> = {
  build: ['none', 'none', 'suggest', 'auto_spawn', 'auto_spawn'],
  plan: ['none', 'none', 'suggest', 'suggest', 'suggest'],
  review: ['none', 'none', 'suggest', 'suggest', 'auto_spawn'],
  delegate: ['none', 'suggest', 'auto_spawn', 'auto_spawn', 'auto_spawn'],
  explore: ['none', 'none', 'none', 'suggest', 'suggest'],
}

/** What is done with a task of this complexity in this mode. Throws INVALID_VALUE. */
export function actionOf(mode: string, complexity: string): RecommendedAction {
  const level = levelOf(complexity)
  const row = Object.hasOwn(ACTIONS, mode) ? ACTIONS[mode] : undefined
  if (!row) throw unknownWord('mode', mode, Object.keys(ACTIONS))
  return row[LEVELS.indexOf(level)]!
}

function levelOf(complexity: string): Level {
  const level = Object.hasOwn(ALIASES, complexity) ? ALIASES[complexity] : LEVELS.find(one => one === complexity)
  if (!level) throw unknownWord('complexity', complexity, [...LEVELS, ...Object.keys(ALIASES)])
  return level
}

/** What tools and modes allow. */
export interface Effects {
  readonly tools: SlotView<Tool>
  readonly modes: SlotView<Mode>
}

/** Whether a member of a team may write or execute; one without a list of tools has what its mode allows. */
export const acts = ({ members }: TeamDefinition, effects: Effects): boolean =>
  Object.values(members).some(member => effectsOf(member, effects).some(one => one === 'write' || one === 'execute'))

/** The mode of a member that names none. */
const USUAL = 'build'

function effectsOf({ tools, mode = USUAL }: TeamMember, effects: Effects): readonly string[] {
  const allowed = effects.modes.get(mode)?.effects ?? ['write']
  return tools === undefined
    ? allowed
    : tools.flatMap(name => effects.tools.get(name)?.effects ?? []).filter(one => allowed.includes(one))
}
