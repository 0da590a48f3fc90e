import type { RunRecord } from './space.ts'
import { type History, isOpen, type Past, spentIn } from './history.ts'

/** What waits, as the log has it. */
export function waitingIn(history: History): RunRecord['waiting'] {
  return [...history.steps].flatMap(([step, past]) => {
    const pause = pauseOf(past)
    if (!pause || !isOpen(history, step)) return []
    const { at, until, event, ask } = pause
    const what = {
      ...(until === undefined ? {} : { until }),
      ...(event === undefined ? {} : { event }),
      ...(ask === undefined ? {} : { ask }),
    }
    return [{ step, node: nodeOf(step), since: at, ...what }]
  })
}

const pauseOf = ({ last, pause }: Past) => (last.t === 'asleep' && pause?.t === 'asleep' ? pause : undefined)

/** When the steps that wait go on by themselves (Unix milliseconds). */
export function duesIn(history: History): number[] {
  const retries = [...history.steps].flatMap(([step, { last }]) =>
    last.t === 'again' && isOpen(history, step) ? [last.due] : []
  )
  return [...retries, ...waitingIn(history).flatMap(({ until }) => (until === undefined ? [] : [until]))]
}

/** The name of a step's node. */
export const nodeOf = (step: string) => step.slice(step.lastIndexOf('/') + 1).replace(/#\d+$/, '')

/** The nodes of the outermost graph that are done, in the order they were first done. */
function completedNodes({ steps }: History): string[] {
  const done = [...steps].filter(([step, { last }]) => last.t === 'done' && !step.includes('/'))
  return [...new Set(done.toSorted(([, a], [, b]) => a.order - b.order).map(([step]) => nodeOf(step)))]
}

/** The node of the outermost graph in which something works, of several the one that did something last. */
export function currentOf(history: History): string | undefined {
  const working = [...history.steps].filter(
    ([step, past]) => WORKING.has(past.last.t) && isOpen(history, step) && !step.startsWith(UNDO)
  )
  const [step] = working.reduce<readonly [string, Past] | []>(
    (found, one) => (found[1] && found[1].order > one[1].order ? found : one),
    []
  )
  return step === undefined ? undefined : nodeOf(step.split('/', 1)[0]!)
}

const WORKING: ReadonlySet<string> = new Set(['begun', 'called', 'woken'])

/** What the names of steps begin with that undo others. */
export const UNDO = 'undo/'

export function metricsOf(history: History, nodes: number, isWhole: boolean): NonNullable<RunRecord['ended']> {
  const { calls, tokens } = spentIn(history)
  const done = completedNodes(history)
  return { completedNodes: done, progress: isWhole ? 1 : progressOf(done.length, nodes), calls, tokens }
}

const MOST = 0.99

/** The share of the nodes of the outermost graph that have been done: it never falls, and is 1 only at the end. */
const progressOf = (done: number, nodes: number): number => Math.min(MOST, nodes === 0 ? 0 : done / nodes)
