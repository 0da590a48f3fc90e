import { systemContext } from '@svc/core'
import { type Tool, Tools } from '@svc/core/contracts'
import { testHost } from '@svc/testing'
import { expect } from 'chai'

const hostOf = (config: object) => testHost([new URL('../..', import.meta.url)], { config: { tools: { text: { ...config } } } })

/** A tool of the plugin in its own host. */
export async function open(name: string, config: object = {}) {
  const host = await hostOf(config)
  return { name, host, tool: host.slot(Tools).get(name)!, close: () => host.close() }
}

type Host = Awaited<ReturnType<typeof testHost>>
const hosts = new Map<string, Promise<Host>>()

/** A group of tests that share a host for each configuration, so that worker processes are reused as in production. */
export const describeTool = (title: string, cases: () => void) =>
  describe(title, () => {
    after('their hosts are closed', async () => {
      const opened = [...hosts.values()]
      hosts.clear()
      for (const host of opened) await (await host).close()
    })
    cases()
  })

/** Calls a tool and returns its data and its text. */
export async function call(name: string, args: Parameters<Tool['call']>[0], config: object = {}) {
  const key = JSON.stringify(config)
  if (!hosts.has(key)) hosts.set(key, hostOf(config))
  const tool = (await hosts.get(key)!).slot(Tools).get(name)!
  const { structured, content } = await tool.call(args, systemContext(new AbortController().signal))
  const [part] = content
  return { data: structured as Record<string, unknown>, text: part?.type === 'text' ? part.text : '' }
}

export const refusal = (work: Promise<unknown>): Promise<Error & { code?: string; hint?: string }> =>
  work.then(
    () => expect.fail('it was not refused'),
    (error: Error) => error
  )
