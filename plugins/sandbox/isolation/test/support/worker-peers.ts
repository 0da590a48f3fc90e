import { definePlugin, type HookCallers, type PluginEntry } from '@svc/core'
import { type WorkerMetrics, Peers, type PeersHooks } from '@svc/core/contracts'

interface Worker {
  readonly generation: number
  readonly hooks: HookCallers<PeersHooks>
}

/** Workers of one server, as far as plugins see them: gives each host that is one its service `Peers`. */
export function openWorkerPeers(): (generation: number) => PluginEntry {
  const all: Worker[] = []
  const plugin = (generation: number) =>
    definePlugin({
      provides: Peers,
      setup({ hooks }) {
        const self = { generation, hooks }
        all.push(self)
        const metricsOf = async (worker: Worker, ...[ctx]: Parameters<Peers['metrics']>): Promise<WorkerMetrics> => ({
          ...(await worker.hooks.metrics({}, ctx)),
          generation: worker.generation,
        })
        return {
          broadcast: async (topic, message, ctx) =>
            void (await Promise.all(all.map(worker => worker.hooks.message({ topic, message }, ctx)))),
          metrics: async ctx =>
            Promise.all([self, ...all.filter(worker => worker !== self)].map(worker => metricsOf(worker, ctx))),
          acquire: async () => true,
          release: async () => {},
          self: async () => 'w1',
          async *ask() {},
        }
      },
    })
  return generation => ({ name: 'peers', use: plugin(generation) })
}
