import { type Prompt, Prompts, type Resource, Resources } from '@svc/core/contracts'
import { item } from '@svc/testing'
import { expect } from 'chai'
import { CLIENTS } from './support/clients.ts'
import { echo, startMcpHost, toolOf } from './support/host.ts'

const note: Resource = {
  uri: 'note://one',
  description: 'A note',
  mimeType: 'text/plain',
  read: async uri => [{ uri, mimeType: 'text/plain', text: 'Buy milk' }],
}
const greeting: Prompt = {
  description: 'A greeting',
  arguments: [{ name: 'whom', required: true }],
  get: async ({ whom }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Greet ${whom}` } }] }),
  complete: async (_argument, begun) => ({ values: ['Ada', 'Alan'].filter(name => name.startsWith(begun)) }),
}
const fails = toolOf(async () => {
  throw new Error('there is no such city')
})

const published = () =>
  startMcpHost({ tools: { echo, fails }, give: [item(Resources, 'note', note), item(Prompts, 'greeting', greeting)] })

for (const [name, connect] of Object.entries(CLIENTS))
  describe(`${name} over /mcp`, () => {
    it('lists the tools, calls them, and gets their errors', async () => {
      await using mcpHost = await published()
      await using two = await connect(mcpHost.url)
      const { tools } = await two.client.listTools()
      expect(tools.map(tool => tool.name)).to.deep.equal(['echo', 'fails'])
      const said = await two.client.callTool({ name: 'echo', arguments: { text: 'héllo' } })
      expect(said.content).to.deep.equal([{ type: 'text', text: 'héllo' }])
      expect(said.structuredContent).to.deep.equal({ text: 'héllo' })
      const failed = await two.client.callTool({ name: 'fails', arguments: {} })
      expect(failed).to.deep.include({ isError: true, content: [{ type: 'text', text: 'there is no such city' }] })
      expect(await two.client.callTool({ name: 'none', arguments: {} }).catch(error => error as object)).to.include({
        code: -32602,
      })
    })

    it('reads resources, gets prompts, and completes', async () => {
      await using mcpHost = await published()
      await using two = await connect(mcpHost.url)
      const { resources } = await two.client.listResources()
      expect(resources).to.deep.equal([{ uri: 'note://one', name: 'note', description: 'A note', mimeType: 'text/plain' }])
      const { contents } = await two.client.readResource({ uri: 'note://one' })
      expect(contents).to.deep.equal([{ uri: 'note://one', mimeType: 'text/plain', text: 'Buy milk' }])
      const { messages } = await two.client.getPrompt({ name: 'greeting', arguments: { whom: 'Ada' } })
      expect(messages).to.deep.equal([{ role: 'user', content: { type: 'text', text: 'Greet Ada' } }])
      const { completion } = await two.client.complete({
        ref: { type: 'ref/prompt', name: 'greeting' },
        argument: { name: 'whom', value: 'Al' },
      })
      expect(completion).to.deep.equal({ values: ['Alan'], total: 1, hasMore: false })
    })
  })
