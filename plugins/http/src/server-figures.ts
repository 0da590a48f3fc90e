import type { Use } from '@svc/core'
import type { Figures, HttpFigures, Peers } from '@svc/core/contracts'
import type { Journal } from './journal.ts'

/** The figures of all workers together. */
export interface ServerFigures {
  readonly read: (use: Use) => Promise<HttpFigures>
  /** For a tap of `Peers.hooks.figures`: adds those of this worker. */
  readonly own: (figures: Figures) => Figures
  /** For a tap of `Peers.hooks.inherit`. */
  readonly inherit: (figures: Figures) => void
}

const NAME = 'http'
const NONE: HttpFigures = { requestsTotal: 0, requestsActive: 0 }

// what is told under this name is what `own` has put there, in this process or in one of its like
const partOf = (figures: Figures) => (figures[NAME] ?? NONE) as unknown as HttpFigures

export function createServerFigures(journal: Journal, peers: Peers | undefined): ServerFigures {
  return {
    read: async use => (peers ? (await peers.figures(use)).reduce(add, NONE) : journal.figures()),
    own: figures => ({ ...figures, [NAME]: { ...journal.figures() } }),
    inherit: figures => journal.inherit(partOf(figures).requestsTotal),
  }
}

function add(sum: HttpFigures, figures: Figures): HttpFigures {
  const { requestsTotal, requestsActive } = partOf(figures)
  return {
    requestsTotal: sum.requestsTotal + requestsTotal,
    requestsActive: sum.requestsActive + (figures.ended ? 0 : requestsActive),
  }
}
