import { END } from '@svc/workflow-lang'
import type { CompiledGraph, CompiledNode } from './compiled.ts'
import { invalid, notAllowed } from './errors.ts'
import { type Entry, type EntryOf, framesOf, historyOf, isOver, nodeOf, type Past, UNDO } from './history.ts'

// What a run takes over from the log of an earlier run: a retry all completed work, a replay that before a node.

/** The first compensated step of a frame, and its position in the log. Steps from there on are run again. */
interface Cut {
  readonly step: string
  readonly at: number
}

const frameOf = (step: string) => step.slice(0, step.lastIndexOf('/') + 1)

/**
 * The entries that a retry takes over: completed steps and caught failures. Other steps run again, and so do compensated steps,
 * with all later steps of their graph and of the outer graphs.
 */
export function takenOver(entries: readonly Entry[]): Entry[] {
  const begun = beginningsIn(entries)
  return keptOf(entries, cutsOf(undoneIn(entries, begun), begun), begun)
}

/**
 * The entries that a replay from a step of the outermost graph reuses: those of the steps that began before it. Throws
 * INVALID_VALUE if the run did not reach the step, or if the work of a step before it was undone.
 */
export function reusedBefore(entries: readonly Entry[], from: string): Entry[] {
  const begun = beginningsIn(entries)
  const outer = [...begun].filter(([step]) => !step.includes('/'))
  const at = begun.get(from)
  if (at === undefined) {
    const reached = outer.map(([step]) => step)
    throw notAllowed('from', `"${from.slice(0, 200)}" was not reached by the run`, reached, { value: from.slice(0, 200) })
  }
  const undone = new Set(undoneIn(entries, begun))
  const first = outer.find(([step, position]) => undone.has(step) && position < at)
  if (first)
    throw invalid('from', `must be "${first[0]}" or an earlier node, because the run has undone the work of "${first[0]}"`, {
      value: from,
    })
  const isEarlier = (step: string) => (begun.get(step.split('/', 1)[0]!) ?? at) < at
  return keptOf(entries, new Map(), begun).filter(entry => isEarlier(stepOf(entry)))
}

/** The step, or the frame, of an entry that is taken over. */
const stepOf = (entry: Entry): string => ('s' in entry ? entry.s : entry.t === 'bound' ? entry.by : (entry as EntryOf<'ended'>).f)

/**
 * Checks that a graph leads over the reused results, and over nothing else, to the step of a replay. Throws INVALID_VALUE: a newer
 * definition can have other nodes on this path.
 */
export function checkPath({ start, nodes }: CompiledGraph, reused: readonly Entry[], from: string): void {
  const { steps } = historyOf(reused)
  const visits = new Map<string, number>()
  for (let name = start; name !== END; ) {
    const visit = (visits.get(name) ?? 0) + 1
    visits.set(name, visit)
    const step = visit === 1 ? name : `${name}#${visit}`
    if (step === from) return
    const [node, past] = [nodes[name]!, steps.get(step)]
    if (!past) throw offPath(from, `it runs "${step}" first, which has no recorded result`)
    if (past.begun.type !== node.type) throw offPath(from, `"${step}" had the type "${past.begun.type}", not "${node.type}"`)
    const next = nextAfter(node, past)
    if (next === undefined) throw offPath(from, `it does not continue after the recorded result of "${step}"`)
    name = next
  }
  throw offPath(from, 'its path ends before')
}

const offPath = (from: string, why: string) =>
  invalid('from', `"${from}" is not reached in the definition with the recorded results: ${why}`, { value: from })

function nextAfter({ next, branches, catch: caught }: CompiledNode, { last }: Past): string | undefined {
  if (last.t !== 'done') return caught
  if (!branches) return next
  if (last.branch !== undefined && Object.hasOwn(branches, last.branch)) return branches[last.branch]
  return next === END ? undefined : next
}

/** Throws INVALID_VALUE if a step is not one of a node of the graph. */
export function checkNode({ nodes }: CompiledGraph, from: string): void {
  if (!from.includes('/') && Object.hasOwn(nodes, nodeOf(from))) return
  throw notAllowed('from', `"${from.slice(0, 200)}" is not a node of the definition`, Object.keys(nodes), {
    value: from.slice(0, 200),
  })
}

/** The position of the first start of each step. */
function beginningsIn(entries: readonly Entry[]): Map<string, number> {
  const begun = new Map<string, number>()
  for (const [at, entry] of entries.entries()) if (entry.t === 'begun' && !begun.has(entry.s)) begun.set(entry.s, at)
  return begun
}

/** The entries of finished steps before the cuts. */
function keptOf(entries: readonly Entry[], cuts: ReadonlyMap<string, Cut>, begun: ReadonlyMap<string, number>): Entry[] {
  const { steps } = historyOf(entries)
  const keeps = (step: string) => {
    const past = steps.get(step)
    return past !== undefined && isOver(past) && !step.startsWith(UNDO) && isBefore(step, cuts, begun)
  }
  const isKept = (entry: Entry) => {
    if ('s' in entry) return keeps(entry.s)
    return entry.t === 'bound' ? keeps(entry.by) : entry.t === 'ended' && isWhole(entry, cuts, begun)
  }
  return entries.filter(isKept)
}

/** The steps whose compensation started. */
function undoneIn(entries: readonly Entry[], begun: ReadonlyMap<string, number>): string[] {
  const undoing = entries.flatMap(entry => (entry.t === 'begun' && entry.s.startsWith(UNDO) ? [entry.s.slice(UNDO.length)] : []))
  return [...begun.keys()].filter(step => undoing.some(item => item.startsWith(`${step}/`)))
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

/** The parent step of a frame: `each` for `each/3/`. */
const stepAbove = (frame: string) => frame.split('/').slice(0, -2).join('/')

/** Whether a step ran before all compensated steps of its graph, and is not inside a later step. */
function isBefore(step: string, cuts: ReadonlyMap<string, Cut>, begun: ReadonlyMap<string, number>): boolean {
  const isAfter = (text: string, orSame: boolean) => {
    const cut = cuts.get(frameOf(text))
    if (!cut || (!orSame && cut.step === text)) return false
    return cut.step === text || (begun.get(text) ?? 0) > cut.at
  }
  return !isAfter(step, true) && ![...framesOf(step)].some(frame => isAfter(stepAbove(frame), false))
}

/** Whether no step of an ended graph was compensated. */
function isWhole({ f }: EntryOf<'ended'>, cuts: ReadonlyMap<string, Cut>, begun: ReadonlyMap<string, number>): boolean {
  return !f.startsWith(UNDO) && !cuts.has(f) && isBefore(`${f}${NONE}`, cuts, begun)
}

/** A name that no step has. */
const NONE = '-'
