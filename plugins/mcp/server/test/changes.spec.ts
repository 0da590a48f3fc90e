import { type Prompt, Prompts, type Resource, Resources, Tools } from '@svc/core/contracts'
import { expect } from 'chai'
import { echo, startMcpHost } from './support/host.ts'
import { later } from './support/later.ts'
import { ask, begin, type Json, messages } from './support/wire.ts'

const prompt: Prompt = { get: async () => ({ messages: [] }) }

/** A resource whose changes a test tells. */
function watched(uri: string) {
  const watching = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  const change = Promise.withResolvers<void>()
  const resource: Resource = {
    uri,
    read: async () => [{ uri, text: '' }],
    async *changes({ signal }) {
      watching.resolve()
      const aborted = new Promise<void>(resolve => signal.addEventListener('abort', () => resolve(), { once: true }))
      await Promise.race([change.promise, aborted])
      if (!signal.aborted) yield uri
      await aborted
      ended.resolve()
    },
  }
  return { resource, watching: watching.promise, ended: ended.promise, change: () => change.resolve() }
}

const methodsOf = async (stream: AsyncGenerator<Json>, count: number) => {
  const methods: unknown[] = []
  for (let at = 0; at < count; at++) methods.push(((await stream.next()).value as Json).method)
  return methods
}

const ALL = { toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }

describe('clients hear of changes', () => {
  it('of the lists, on the stream of a session', async () => {
    const { gift, add } = later()
    await using mcpHost = await startMcpHost({ give: [gift] })
    const session = await begin(mcpHost.url)
    const stream = messages(await session.open())
    add(Tools, 'more', echo)
    expect(await methodsOf(stream, 1)).to.deep.equal(['notifications/tools/list_changed'])
    add(Prompts, 'more', prompt)
    add(Resources, 'more', watched('test://more').resource)
    expect((await methodsOf(stream, 2)).toSorted((a, b) => String(a).localeCompare(String(b)))).to.deep.equal([
      'notifications/prompts/list_changed',
      'notifications/resources/list_changed',
    ])
    const { result } = (await session.request('tools/list')).body
    const { tools } = result as { tools: { name: string }[] }
    expect(tools.map(tool => tool.name)).to.deep.equal(['echo', 'more'])
    await session.end()
  })

  it('of the lists, on a subscription; of what was asked for only', async () => {
    const { gift, add } = later()
    await using mcpHost = await startMcpHost({ give: [gift] })
    const stream = messages(await ask(mcpHost.url, 'subscriptions/listen', { notifications: { promptsListChanged: true } }))
    expect(await methodsOf(stream, 1)).to.deep.equal(['notifications/subscriptions/acknowledged'])
    add(Tools, 'more', echo)
    add(Prompts, 'more', prompt)
    expect(await methodsOf(stream, 1)).to.deep.equal(['notifications/prompts/list_changed'])
  })

  it('of tools of their own set only', async () => {
    const { gift, add } = later()
    await using mcpHost = await startMcpHost({ give: [gift], mcp: { sets: { some: ['echo', 'some_*'] } } })
    const session = await begin(mcpHost.url, { path: '/mcp/some' })
    const stream = messages(await session.open())
    const all = messages(await ask(mcpHost.url, 'subscriptions/listen', { notifications: ALL }))
    await methodsOf(all, 1)
    add(Tools, 'other', echo)
    expect(await methodsOf(all, 1)).to.deep.equal(['notifications/tools/list_changed'])
    add(Prompts, 'more', prompt)
    add(Tools, 'some_more', echo)
    expect(await methodsOf(stream, 1)).to.deep.equal(['notifications/tools/list_changed'])
    await session.end()
    expect((await stream.next()).done).to.equal(true)
  })

  it('of a resource that their session follows, which is watched no longer than that', async () => {
    const { resource, watching, ended, change } = watched('test://clock')
    const { gift, add } = later()
    await using mcpHost = await startMcpHost({ give: [gift] })
    add(Resources, 'clock', resource)
    const session = await begin(mcpHost.url)
    const stream = messages(await session.open())
    await session.request('resources/subscribe', { uri: 'test://clock' }, 2)
    await watching
    change()
    expect((await stream.next()).value).to.deep.include({
      method: 'notifications/resources/updated',
      params: { uri: 'test://clock' },
    })
    await session.end()
    await ended
  })

  it('of a resource that their subscription names', async () => {
    const { resource, watching, ended, change } = watched('test://clock')
    const { gift, add } = later()
    await using mcpHost = await startMcpHost({ give: [gift] })
    add(Resources, 'clock', resource)
    const leaving = new AbortController()
    const params = { notifications: { resourceSubscriptions: ['test://clock'] } }
    const stream = messages(await ask(mcpHost.url, 'subscriptions/listen', params, { signal: leaving.signal, id: 'mine' }))
    await methodsOf(stream, 1)
    await watching
    change()
    const { value } = (await stream.next()) as { value: Json }
    expect(value).to.deep.include({ method: 'notifications/resources/updated' })
    expect(value.params).to.deep.equal({
      uri: 'test://clock',
      _meta: { 'io.modelcontextprotocol/subscriptionId': 'mine' },
    })
    leaving.abort()
    await ended
  })
})
