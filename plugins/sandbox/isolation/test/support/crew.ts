import { definePlugin, type HookCallers, type PluginEntry } from '@svc/core'
import { type Figures, Peers, type PeersHooks } from '@svc/core/contracts'

interface Worker {
  readonly generation: number
  readonly hooks: HookCallers<PeersHooks>
}

/** Workers of one server, as far as plugins see them: gives each host that is one its service `Peers`. */
export function openCrew(): (generation: number) => PluginEntry {
  const all: Worker[] = []
  const use = (generation: number) =>
    definePlugin({
      provides: Peers,
      setup({ hooks }) {
        const self = { generation, hooks }
        all.push(self)
        const figuresOf = async (one: Worker, ...[use]: Parameters<Peers['figures']>): Promise<Figures> => ({
          ...(await one.hooks.figures({}, use)),
          generation: one.generation,
        })
        return {
          tell: async (topic, message, use) => void (await Promise.all(all.map(one => one.hooks.told({ topic, message }, use)))),
          figures: async use => Promise.all([self, ...all.filter(one => one !== self)].map(one => figuresOf(one, use))),
          enter: async () => true,
          leave: async () => {},
          self: async () => 'w1',
          async *ask() {},
        }
      },
    })
  return generation => ({ name: 'peers', use: use(generation) })
}
