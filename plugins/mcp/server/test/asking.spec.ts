import { svcError } from '@svc/core'
import type { InputRequest, Json, Tool, ToolDialog } from '@svc/core/contracts'
import { expect } from 'chai'
import { CLIENTS } from './support/clients.ts'
import { startMcpHost, toolOf } from './support/host.ts'
import { asked, begin } from './support/wire.ts'

const question: InputRequest = {
  method: 'elicitation/create',
  params: {
    mode: 'form',
    message: 'Which city?',
    requestedSchema: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
  },
}

const textOf = (text: string) => ({ content: [{ type: 'text' as const, text }] })

/** A tool that asks for a city and tells it with its state; `dialogs` are those it had. */
function curious(more: Partial<Tool> = {}) {
  const dialogs: ToolDialog[] = []
  const tool: Tool = {
    ...toolOf(async () => textOf('no city'), more),
    async *run(_args, dialog) {
      dialogs.push(dialog)
      const { content } = (dialog.answers?.where ?? {}) as { content?: { city?: Json } }
      if (dialog.state !== undefined && dialog.state !== 'kept') throw svcError('INPUT_STATE_INVALID', 'not what was given')
      if (content?.city === undefined) yield { type: 'input', requests: { where: question }, state: 'kept' }
      else yield { type: 'result', result: textOf(`${content.city as string} (${dialog.state})`) }
    },
  }
  return { tool, dialogs }
}

describe('a tool that asks', () => {
  for (const [name, connect] of Object.entries(CLIENTS)) {
    it(`is answered by ${name}, and gets back its state`, async () => {
      const { tool } = curious()
      await using mcpHost = await startMcpHost({ tools: { travel: tool } })
      await using two = await connect(mcpHost.url, () => ({ action: 'accept', content: { city: 'Paris' } }))
      const { content } = await two.client.callTool({ name: 'travel', arguments: {} })
      expect(content).to.deep.equal(textOf('Paris (kept)').content)
    })

    it(`and wants a person asked first asks through ${name}, then for what it needs itself`, async () => {
      const { tool, dialogs } = curious({ asks: true })
      const questions: string[] = []
      await using mcpHost = await startMcpHost({ tools: { travel: tool } })
      await using two = await connect(mcpHost.url, message => {
        questions.push(message)
        const content: Record<string, string | boolean> = message.startsWith('May') ? { allow: true } : { city: 'Paris' }
        return { action: 'accept', content }
      })
      const { content } = await two.client.callTool({ name: 'travel', arguments: {} })
      expect(content).to.deep.equal(textOf('Paris (kept)').content)
      expect(questions).to.deep.equal(['May the tool "travel" run?', 'Which city?'])
      expect(dialogs.map(dialog => Object.keys(dialog.answers ?? {}))).to.deep.equal([[], ['where']])
    })
  }

  it('is not called if the user declines, or if the client cannot ask the user', async () => {
    const { tool, dialogs } = curious({ asks: true })
    await using mcpHost = await startMcpHost({ tools: { travel: tool } })
    const connect = CLIENTS['the SDK of today, stateless']!
    await using no = await connect(mcpHost.url, () => ({ action: 'accept', content: { allow: false } }))
    await using mute = await connect(mcpHost.url)
    for (const [two, words] of [
      [no, /declined/],
      [mute, /does not support elicitation/],
    ] as const) {
      const { isError, content } = await two.client.callTool({ name: 'travel', arguments: {} })
      expect(isError).to.equal(true)
      expect(JSON.stringify(content)).to.match(words)
    }
    expect(dialogs).to.deep.equal([])
  })

  it('can ask only the questions that its caller supports', async () => {
    const { tool, dialogs } = curious()
    await using mcpHost = await startMcpHost({ tools: { travel: tool } })
    const call = (capabilities: object) =>
      asked(mcpHost.url, 'tools/call', { name: 'travel', arguments: {} }, { capabilities: capabilities as never })
    const { status, body } = await call({ sampling: {}, roots: {} })
    expect([status, body.error?.code]).to.deep.equal([400, -32021])
    expect(body.error?.data).to.have.nested.property('requiredCapabilities.elicitation')
    expect((await call({ elicitation: {} })).body.result).to.deep.include({ resultType: 'input_required', requestState: 'kept' })
    expect(dialogs.map(({ can }) => can)).to.deep.equal([['sampling/createMessage', 'roots/list'], ['elicitation/create']])
    const session = await begin(mcpHost.url)
    const { result } = (await session.request('tools/call', { name: 'travel', arguments: {} })).body
    expect(result).to.include({ isError: true })
  })

  it('is begun once, though the SDK goes on with it', async () => {
    const { tool, dialogs } = curious()
    await using mcpHost = await startMcpHost({ tools: { travel: tool } })
    await asked(mcpHost.url, 'tools/call', { name: 'travel', arguments: {} }, { capabilities: { elicitation: {} } })
    expect(dialogs).to.have.length(1)
  })

  it('refuses a state that is not its own, as a fault of the request', async () => {
    const { tool } = curious()
    await using mcpHost = await startMcpHost({ tools: { travel: tool } })
    const params = { name: 'travel', arguments: {}, inputResponses: { where: { action: 'decline' } }, requestState: 'forged' }
    const { body } = await asked(mcpHost.url, 'tools/call', params, { capabilities: { elicitation: {} } })
    expect(body.error).to.include({ code: -32602, message: 'not what was given' })
  })
})
