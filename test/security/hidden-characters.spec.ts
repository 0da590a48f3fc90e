import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect } from 'chai'
import { runSvc } from '../support/command.ts'
import { newHome, post, type Service, startService } from '../support/service.ts'

const DECEIVER = fileURLToPath(new URL('../support/deceiver.mjs', import.meta.url))
/** Zero width, bidirectional override, tag letters, escape, bell, half a surrogate pair; in JSON also as it is escaped. */
const HIDDEN = /[\u200b\u202e\u{e0041}\u{e0042}]|(?![\n\r\t])\p{Cc}|\p{Surrogate}|\\u(200b|202e|db40|dc41|001b|0007|d800)/u
const WAYS = ['text', 'structured', 'resource', 'meta', 'failure', 'error']
const HONEST = 'family 👨‍👩‍👧 heart ❤️ keycap 1️⃣ می‌خواهم क्‍ष\n\ttab'

describe('hidden and control characters in what a tool answers', () => {
  let service: Service
  let page: ReturnType<typeof createServer>
  before(async function () {
    this.timeout(30_000)
    const html = `<html><head><title>Title\u202e</title></head><body><p>be\u200bfore\u{e0041}\u{e0042}after</p></body></html>`
    page = createServer((_, response) => void response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(html))
    await new Promise<void>(resolve => page.listen(0, '127.0.0.1', resolve))
    const home = await newHome()
    const clients = [{ name: 'liar', command: process.execPath, args: [DECEIVER] }]
    const config = { mcp: { server: { enabled: true }, clients }, tools: { web: { allow: ['127.0.0.1'] } } }
    await writeFile(join(home, 'svc.config.json'), JSON.stringify(config))
    service = await startService({ home, cwd: home })
    for (;;) {
      const { tools } = (await (await fetch(`${service.url}/tools`)).json()) as { tools: { name: string }[] }
      if (tools.some(({ name }) => name === 'liar__smuggle')) break
      await new Promise(resolve => setTimeout(resolve, 20))
    }
  })
  after(async () => {
    await service?.[Symbol.asyncDispose]()
    page.close()
  })

  const clean = (text: string) => {
    expect(text).to.match(/before|done|plain/)
    expect(text.match(HIDDEN)?.[0], text).to.equal(undefined)
  }

  for (const how of WAYS) {
    it(`are gone from POST /tools/{name}/call: ${how}`, async () => {
      const answer = await fetch(`${service.url}/tools/liar__smuggle/call`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ arguments: { how } }),
      })
      clean(await answer.text())
    })

    it(`are gone from the chat, for the model and in its events: ${how}`, async () => {
      const answer = await fetch(`${service.url}/api/v1/chat/stream`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ message: `/tool liar__smuggle {"how":"${how}"}` }),
      })
      const text = await answer.text()
      expect(text).to.contain('tool_result')
      // a model is given the contents alone
      if (how !== 'structured' && how !== 'resource') expect(text).to.match(/before|plain/)
      expect(text.match(HIDDEN)?.[0], text).to.equal(undefined)
    })

    it(`are gone from /mcp: ${how}`, async () => {
      await using client = await connected(service)
      const answer = await client.callTool({ name: 'liar__smuggle', arguments: { how } }).then(
        result => JSON.stringify(result),
        (error: unknown) => String(error)
      )
      clean(answer)
    })
  }

  it('are gone from the progress and the log messages of a call', async () => {
    const seen: string[] = []
    await using client = await connected(service)
    client.setNotificationHandler('notifications/message', ({ params }) => void seen.push(JSON.stringify(params)))
    await client.callTool({ name: 'liar__report', arguments: {} }, { onprogress: item => void seen.push(JSON.stringify(item)) })
    expect(seen).to.have.length(2)
    seen.forEach(clean)
  })

  it('are listed in the metadata of the result, by their code points', async () => {
    const { body } = await post(`${service.url}/tools/liar__smuggle/call`, { arguments: { how: 'text' } })
    expect(body['content']).to.deep.equal([{ type: 'text', text: 'before[31mafter' }])
    await using client = await connected(service)
    const { _meta } = await client.callTool({ name: 'liar__smuggle', arguments: { how: 'text' } })
    expect(_meta?.['svc/hidden_characters']).to.include('U+200B × 1').and.include('U+001B × 1')
  })

  it('are gone from what svc mcp test prints', async () => {
    const args = ['mcp', 'test', 'liar', '--tool', 'smuggle', '--args', '{"how":"text"}', '--config', 'svc.config.json']
    for (const more of [[], ['--json']]) clean((await runSvc([...args, ...more], { home: service.home, share: true })).out)
  })

  it('stay where an emoji or a word of its script needs them', async () => {
    const { body } = await post(`${service.url}/tools/liar__echo/call`, { arguments: { text: HONEST } })
    expect(body['content']).to.deep.equal([{ type: 'text', text: HONEST }])
  })

  it('are gone from pages of the web, with a note', async () => {
    const url = `http://127.0.0.1:${(page.address() as AddressInfo).port}/`
    const { body } = await post(`${service.url}/tools/fetch_page/call`, { arguments: { url } })
    const { structured_content: shown } = body as { structured_content: { title: string; content: string; note: string } }
    expect(shown).to.include({ title: 'Title', content: 'beforeafter' })
    expect(shown.note).to.contain('U+200B × 1').and.contain('U+E0041 × 1')
  })

  it('a log message that is nested deeper than JSON can be written is dropped, and the call goes on', async () => {
    const { body } = await post(`${service.url}/tools/liar__deep/call`, { arguments: {} })
    expect(body).to.deep.include({ success: true, content: [{ type: 'text', text: 'done' }] })
    expect(service.output()).to.not.match(/worker.*(ended|died|crashed)/)
  })
})

async function connected(service: Service) {
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`)))
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() })
}
