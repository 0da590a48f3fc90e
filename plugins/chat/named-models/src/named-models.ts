import type { CallContext } from '@svc/core'
import type { ModelCallEvent, ModelCalls, NamedCall, NamedModels } from '@svc/core/contracts'
import { lazyStream } from '@svc/plugin-kit'
import type { Agents } from './agents.ts'
import { agentLacks } from './errors.ts'
import type { Names } from './names.ts'

/** Calls models and agents by their names. */
export function createNamedModels(names: Names, modelCalls: ModelCalls, agents: Agents): NamedModels {
  const selectOf = async (name: string, ctx: CallContext) => {
    const target = await names.resolve(name, ctx)
    return 'agent' in target ? target : { ...target, select: target.model }
  }

  const open = async (call: NamedCall, ctx: CallContext): Promise<AsyncIterable<ModelCallEvent>> => {
    const target = await selectOf(call.name, ctx)
    if ('agent' in target) return agents.stream(target, call, ctx)
    const { request, defaults, limits } = call
    const order = { request, select: target.select, ...(defaults ? { defaults } : {}), ...(limits ? { limits } : {}) }
    return modelCalls.stream(order, ctx)
  }

  return {
    list: ctx => names.list(ctx),
    find: (name, ctx) => names.describe(name, ctx),
    stream: (call, ctx) => lazyStream(() => open(call, ctx)),
    async embed({ name, request }, ctx) {
      const target = await selectOf(name, ctx)
      if ('agent' in target) throw agentLacks('embeddings', target.kind)
      return modelCalls.embed({ request, select: target.select }, ctx)
    },
    async check({ name, request, defaults }, ctx) {
      const target = await selectOf(name, ctx)
      if ('agent' in target) return agents.check(target, { request, ...(defaults ? { defaults } : {}) }, ctx)
      return modelCalls.check({ request, select: target.select, ...(defaults ? { defaults } : {}) }, ctx)
    },
    async countTokens({ name, request }, ctx) {
      const target = await selectOf(name, ctx)
      if ('agent' in target) return modelCalls.countTokens({ request, select: agents.selectOf(target) }, ctx)
      return modelCalls.countTokens({ request, select: target.select }, ctx)
    },
  }
}
