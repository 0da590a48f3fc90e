import { systemUse } from '@svc/core'
import { type Tool, Tools } from '@svc/core/contracts'
import { testHost } from '@svc/core/testing'
import { expect } from 'chai'

/** One tool of the plugin in a host of its own. */
export async function open(name: string, config: object = {}) {
  const host = await testHost([new URL('../..', import.meta.url)], { config: { tools: { text: { ...config } } } })
  return { name, host, tool: host.slot(Tools).get(name)!, close: () => host.close() }
}

/** Calls a tool once; answers its data and its words. */
export async function call(name: string, args: Parameters<Tool['call']>[0], config: object = {}) {
  const { tool, close } = await open(name, config)
  try {
    const { structured, content } = await tool.call(args, systemUse(new AbortController().signal))
    const [part] = content
    return { data: structured as Record<string, unknown>, text: part?.type === 'text' ? part.text : '' }
  } finally {
    await close()
  }
}

export const refusal = (work: Promise<unknown>): Promise<Error & { code?: string; mend?: string }> =>
  work.then(
    () => expect.fail('it was not refused'),
    (error: Error) => error
  )
