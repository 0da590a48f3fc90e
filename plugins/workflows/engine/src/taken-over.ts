import type { Entry, EntryOf } from './entries.ts'
import { UNDO } from './metrics.ts'
import { framesOf, historyOf, isOver } from './history.ts'

/** Of a graph that runs: the step that was undone first, and where in the log it began. Nothing from there on counts. */
interface Cut {
  readonly step: string
  readonly at: number
}

const frameOf = (step: string) => step.slice(0, step.lastIndexOf('/') + 1)

/**
 * What of a log a new run takes over: what was done, and failures that were caught. What was not is begun anew, and so is what was undone, with all that came
 * after it in its graph and in those round it.
 */
export function takenOver(entries: readonly Entry[]): Entry[] {
  const { steps } = historyOf(entries)
  const begun = new Map<string, number>()
  for (const [at, entry] of entries.entries()) if (entry.t === 'begun' && !begun.has(entry.s)) begun.set(entry.s, at)
  const cuts = cutsOf(undoneIn(entries, begun), begun)
  const keeps = (step: string) => {
    const past = steps.get(step)
    return past !== undefined && isOver(past) && !step.startsWith(UNDO) && isBefore(step, cuts, begun)
  }
  const isKept = (entry: Entry) => ('s' in entry ? keeps(entry.s) : entry.t === 'ended' && isWhole(entry, cuts, begun))
  return entries.filter(isKept)
}

/** The steps for which something was done to undo them. */
function undoneIn(entries: readonly Entry[], begun: ReadonlyMap<string, number>): string[] {
  const undoing = entries.flatMap(entry => (entry.t === 'begun' && entry.s.startsWith(UNDO) ? [entry.s.slice(UNDO.length)] : []))
  return [...begun.keys()].filter(step => undoing.some(one => one.startsWith(`${step}/`)))
}

function cutsOf(undone: readonly string[], begun: ReadonlyMap<string, number>): Map<string, Cut> {
  const cuts = new Map<string, Cut>()
  const cut = (step: string) => {
    const at = begun.get(step) ?? 0
    const there = cuts.get(frameOf(step))
    if (!there || at < there.at) cuts.set(frameOf(step), { step, at })
  }
  for (const step of undone) {
    cut(step)
    for (const frame of framesOf(step)) cut(stepAbove(frame))
  }
  return cuts
}

/** The step whose child a frame is: `each` of `each/3/`. */
const stepAbove = (frame: string) => frame.split('/').slice(0, -2).join('/')

/** Whether a step came before all that was undone in its graph, and lies in nothing that came after. */
function isBefore(step: string, cuts: ReadonlyMap<string, Cut>, begun: ReadonlyMap<string, number>): boolean {
  const isAfter = (one: string, orSame: boolean) => {
    const cut = cuts.get(frameOf(one))
    if (!cut || (!orSame && cut.step === one)) return false
    return cut.step === one || (begun.get(one) ?? 0) > cut.at
  }
  return !isAfter(step, true) && ![...framesOf(step)].some(frame => isAfter(stepAbove(frame), false))
}

/** Whether nothing in a graph that has ended was undone. */
function isWhole({ f }: EntryOf<'ended'>, cuts: ReadonlyMap<string, Cut>, begun: ReadonlyMap<string, number>): boolean {
  return !f.startsWith(UNDO) && !cuts.has(f) && isBefore(`${f}${NONE}`, cuts, begun)
}

/** The name of no step. */
const NONE = '-'
