import { messageOf, type Log, type SlotView, type Use } from '@svc/core'
import type { Figures, MetricFamily, MetricSource, PeerMessage, Peers } from '@svc/core/contracts'
import { familiesIn } from './form.ts'
import { createHeritage, grows, summable } from './heritage.ts'

/** The figures of all workers: what this one adds to them, and all of them together. */
export interface WorkerFigures {
  /** The families of each worker, this one's first, and the totals of those that ended. */
  read(use: Use): Promise<readonly (readonly MetricFamily[])[]>
  /** For taps of `Peers.hooks`. */
  readonly own: (figures: Figures, use: Use) => Promise<Figures>
  readonly inherit: (figures: Figures) => void
  readonly told: (news: PeerMessage) => void
  /** Whether somebody has asked for the figures of this server: what is costly to count is counted from then on. */
  readonly wasRead: () => boolean
}

interface Told {
  readonly families: readonly MetricFamily[]
  readonly wasRead: boolean
}

const NAME = 'metrics'

// what is told under this name is what `own` has put there, in this process or in one of its like
const partOf = (figures: Figures) => (figures[NAME] ?? { families: [], wasRead: true }) as unknown as Told

/** Reads all sources. One that fails is left out, and the log says so. */
export function createWorkerFigures(sources: SlotView<MetricSource>, peers: Peers | undefined, log: Log): WorkerFigures {
  const heritage = createHeritage()
  let wasRead = false
  const readOne = async ([name, source]: [string, MetricSource], use: Use) => {
    try {
      return familiesIn(name, await source.read(use))
    } catch (error) {
      log.warn({ source: name, err: error }, `the metrics of ${name} are missing: ${messageOf(error)}`)
      return []
    }
  }
  const readOwn = async (use: Use) => {
    const read = await Promise.all(sources.entries().map(entry => readOne(entry, use)))
    return read.flat()
  }
  const readAll = async (among: Peers, use: Use): Promise<readonly Figures[]> => {
    const all = await among.figures(use)
    if (all.every(one => one.ended || partOf(one).wasRead)) return all
    await among.tell(NAME, null, use)
    return among.figures(use)
  }
  return {
    async read(use) {
      wasRead = true
      if (!peers) return [await readOwn(use)]
      return (await readAll(peers, use)).map(familiesOf)
    },
    async own(figures, use) {
      const families = [...(await readOwn(use)).map(summable), ...heritage.read()]
      return { ...figures, [NAME]: { families, wasRead } as unknown as Figures[string] }
    },
    inherit: figures => heritage.take(partOf(figures).families),
    told({ topic }) {
      if (topic === NAME) wasRead = true
    },
    wasRead: () => wasRead,
  }
}

function familiesOf(figures: Figures): readonly MetricFamily[] {
  const { families } = partOf(figures)
  return figures.ended ? families.filter(grows) : families
}
