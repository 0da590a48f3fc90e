import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Chat } from '@ai-sdk/react'
import { createClient } from '@svc/client'
import { approvalsAreAnswered, createChatTransport, type TurnStorage } from '@svc/client/ai-sdk'
import type { DynamicToolUIPart, UIMessage } from 'ai'
import { expect } from 'chai'
import { type Browser, chromium, type Page } from 'playwright-core'
import { build, defaultClientConditions, preview } from 'vite'
import { chromiumPath, describeWith } from '../support/needs.ts'
import { newHome, type Service, startService } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { openCuttingProxy } from './support/cutting-proxy.ts'

const SUPPORT = (name: string) => fileURLToPath(new URL(`../support/${name}`, import.meta.url))
const SLEEPS = fileURLToPath(new URL('./support/sleeps.ts', import.meta.url))
const EXAMPLE = fileURLToPath(new URL('../../examples/ai-sdk-chat', import.meta.url))

const chatOn = (url: string, body = {}) =>
  new Chat<UIMessage>({
    transport: createChatTransport({ client: createClient({ url, retry: false }), body }),
    sendAutomaticallyWhen: approvalsAreAnswered,
  })

/** A chat with an id, whose open turn is found by another with the same storage, as after a reload of the page. */
const chatWith = (url: string, storage: TurnStorage) =>
  new Chat<UIMessage>({
    id: 'the-chat',
    transport: createChatTransport({ client: createClient({ url, reconnect: { minDelayMs: 1 } }), storage }),
    sendAutomaticallyWhen: approvalsAreAnswered,
  })

function storageOf(): TurnStorage & { readonly items: Map<string, string> } {
  const items = new Map<string, string>()
  return {
    items,
    getItem: key => items.get(key) ?? null,
    setItem: (key, value) => void items.set(key, value),
    removeItem: key => void items.delete(key),
  }
}

const COUNTING = '/pace 50\none two three four five six seven eight nine ten'
const hasText = async (chat: Chat<UIMessage>) => chat.lastMessage?.role === 'assistant' && / one/.test(textOf(chat.lastMessage))
const statusOf = ({ lastMessage }: Chat<UIMessage>) => (lastMessage?.metadata as { status?: string } | undefined)?.status

const textOf = ({ parts }: UIMessage) => parts.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('')
const toolsOf = ({ parts }: Pick<UIMessage, 'parts'> = { parts: [] }) =>
  parts.filter((part): part is DynamicToolUIPart => part.type === 'dynamic-tool')
const shown = ({ toolName, state }: DynamicToolUIPart) => `${toolName} ${state}`

/** The last message, when it has a status: the turn has ended. */
async function ended(chat: Chat<UIMessage>): Promise<UIMessage> {
  const isEnded = async () => {
    const { status } = (chat.lastMessage?.metadata ?? {}) as { status?: string }
    return chat.status === 'ready' && status !== undefined
  }
  await until(isEnded, Boolean)
  return chat.lastMessage!
}

describe('the AI SDK with the chat of a server', function () {
  this.timeout(60_000)
  let home: string
  let service: Service
  before(async () => {
    home = await newHome()
    await writeFile(join(home, 'svc.config.json'), JSON.stringify({ plugins: [SUPPORT('asks.ts'), SLEEPS] }))
    service = await startService({ home })
  })
  after(async () => {
    await service?.stop()
    await rm(home, { recursive: true, force: true })
  })

  it('continues a conversation, and sends the last message only', async () => {
    const chat = chatOn(service.url)
    await chat.sendMessage({ text: 'Hello' })
    expect(textOf(chat.lastMessage!)).to.equal('You said: Hello')
    await chat.sendMessage({ text: 'Again' })
    expect(textOf(chat.lastMessage!)).to.equal('You said: Again (turn 2)')
    expect(chat.messages.map(message => message.role)).to.deep.equal(['user', 'assistant', 'user', 'assistant'])
    const ids = chat.messages.flatMap(
      ({ metadata }) => (metadata as { conversation_id?: string } | undefined)?.conversation_id ?? []
    )
    expect(ids[0]).to.be.a('string').and.equal(ids[1])
    expect(chat.lastMessage!.metadata).to.include({ status: 'completed', provider: 'local' }).and.have.property('tokens_used')
    // as an application does that has stored the messages
    const later = chatOn(service.url)
    later.messages = structuredClone(chat.messages)
    await later.sendMessage({ text: 'Third' })
    expect(textOf(later.lastMessage!)).to.equal('You said: Third (turn 3)')
  })

  it('shows tools and text in their order', async () => {
    const chat = chatOn(service.url)
    await chat.sendMessage({ text: '/tool calculate {"expression": "6*7"}\n/tool decode_base64 {"text": "%"}' })
    expect(toolsOf(chat.lastMessage!).map(shown)).to.deep.equal(['calculate output-available', 'decode_base64 output-error'])
    expect(chat.lastMessage!.parts.map(part => part.type)).to.deep.equal(['step-start', 'dynamic-tool', 'dynamic-tool', 'text'])
    expect(textOf(chat.lastMessage!)).to.contain('calculate answered: 42')
  })

  it('lets a person approve and deny tools that ask at the same time, and goes on with the same message', async () => {
    const chat = chatOn(service.url)
    await chat.sendMessage({ text: '/tool whereabouts {}\n/tool whereabouts {}' })
    expect(chat.status).to.equal('ready')
    for (const answer of [{ approved: true }, { approved: false, reason: 'once is enough' }]) {
      const next = async () => toolsOf(chat.lastMessage).find(part => part.state === 'approval-requested')
      await chat.addToolApprovalResponse({ id: (await until(next, Boolean))!.approval!.id, ...answer })
    }
    const message = await ended(chat)
    expect(toolsOf(message).map(shown)).to.deep.equal(['whereabouts output-available', 'whereabouts output-denied'])
    expect(textOf(message)).to.match(/whereabouts answered: \d+[^]*Not allowed: once is enough/)
    expect(chat.messages).to.have.length(2)
  })

  it('goes on when a person approves while another tool still runs', async () => {
    const chat = chatOn(service.url)
    const sending = chat.sendMessage({ text: '/tool whereabouts {}\n/tool sleep_briefly {}' })
    const asking = async () => toolsOf(chat.lastMessage).find(part => part.state === 'approval-requested')
    const { approval } = (await until(asking, Boolean))!
    expect(toolsOf(chat.lastMessage).map(shown)).to.include('sleep_briefly input-available')
    await chat.addToolApprovalResponse({ id: approval!.id, approved: true })
    await sending
    const message = await ended(chat)
    expect(toolsOf(message).map(shown)).to.deep.equal(['whereabouts output-available', 'sleep_briefly output-available'])
    expect(textOf(message)).to.contain('whereabouts answered')
  })

  it('drops a turn that waits when the person writes something else', async () => {
    const chat = chatOn(service.url)
    await chat.sendMessage({ text: 'Hello' })
    await chat.sendMessage({ text: '/tool whereabouts {}' })
    await chat.sendMessage({ text: 'Never mind' })
    expect(textOf(chat.lastMessage!)).to.match(/^You said: Never mind/)
  })

  it('reports failures, and stops', async () => {
    const chat = chatOn(service.url)
    await chat.sendMessage({ text: '/fail overloaded after 2\none two three four' })
    expect(chat.status).to.equal('error')
    expect(chat.error?.message).to.match(/overloaded/)
    const wrong = chatOn(service.url, { model: 'none', provider: 'local' })
    await wrong.sendMessage({ text: 'Hello' })
    expect(wrong.error).to.include({ code: 'MODEL_NOT_FOUND' })

    const slow = chatOn(service.url)
    const sending = slow.sendMessage({ text: '/pace 300\none two three four five six seven eight nine ten' })
    const hasBegun = async () => slow.lastMessage?.role === 'assistant' && textOf(slow.lastMessage).includes('You')
    await until(hasBegun, Boolean)
    await slow.stop()
    await sending
    expect(textOf(slow.lastMessage!)).to.not.contain('ten')
  })

  it('refuses what a server cannot do', async () => {
    const chat = chatOn(service.url)
    await chat.sendMessage({ text: 'Hello' })
    await chat.regenerate()
    expect(chat.error).to.include({ code: 'REQUEST_INVALID', message: 'svc cannot generate a reply anew' })
    const other = chatOn(service.url)
    await other.sendMessage({
      text: 'See',
      files: [{ type: 'file', mediaType: 'image/png', url: 'http://127.0.0.1:9/picture.png' }],
    })
    expect(other.error).to.include({ code: 'REQUEST_INVALID', message: 'a file is not a data URL in base64' })
  })

  it('sends images and files as parts of the message', async () => {
    const bodies: unknown[] = []
    const client = createClient({
      url: service.url,
      retry: false,
      async fetch(request) {
        bodies.push(await request.clone().json())
        return fetch(request)
      },
    })
    const chat = new Chat<UIMessage>({ transport: createChatTransport({ client, body: { mode: 'review' } }) })
    const [png, pdf] = ['data:image/png;base64,iVBORw0KGgo=', 'data:application/pdf;base64,JVBERi0xLjQ=']
    await chat.sendMessage({
      text: 'See',
      files: [
        { type: 'file', mediaType: 'image/png', url: png },
        { type: 'file', mediaType: 'application/pdf', filename: 'a.pdf', url: pdf },
      ],
    })
    expect(bodies[0]).to.deep.equal({
      message: 'See',
      mode: 'review',
      interactive: true,
      parts: [
        { type: 'image', media_type: 'image/png', data: 'iVBORw0KGgo=' },
        { type: 'file', media_type: 'application/pdf', data: 'JVBERi0xLjQ=', name: 'a.pdf' },
      ],
    })
  })

  it('is whole although its connections are cut', async () => {
    await using proxy = await openCuttingProxy(service.url, 3)
    const chat = chatWith(proxy.url, storageOf())
    await chat.sendMessage({ text: COUNTING })
    expect([statusOf(chat), chat.error]).to.deep.equal(['completed', undefined])
    expect(textOf(chat.lastMessage!)).to.match(/one two [^]* ten$/)
    expect(proxy.asked).to.have.length.above(3)
  })

  it('resumes the turn of a page that was loaded again, once, and only while the server has it', async () => {
    const storage = storageOf()
    const first = chatWith(service.url, storage)
    const sending = first.sendMessage({ text: COUNTING })
    await until(() => hasText(first), Boolean)
    const second = chatWith(service.url, storage)
    second.messages = structuredClone(first.messages)
    // as React does in its strict mode
    await Promise.all([second.resumeStream(), second.resumeStream()])
    await sending
    expect([statusOf(first), statusOf(second)]).to.deep.equal(['completed', 'completed'])
    expect(second.messages).to.deep.equal(first.messages)
    expect(storage.items.size).to.equal(0)
    const third = chatWith(service.url, storage)
    await third.resumeStream()
    storage.setItem('svc-turn-the-chat', `turn_${'0'.repeat(32)}_AA`)
    await third.resumeStream()
    expect([third.status, third.error, third.messages.length, storage.items.size]).to.deep.equal(['ready', undefined, 0, 0])
  })

  it('stops a turn that it has resumed', async () => {
    const storage = storageOf()
    const first = chatWith(service.url, storage)
    const sending = first.sendMessage({ text: COUNTING }, { body: { detach: true } })
    await until(() => hasText(first), Boolean)
    const second = chatWith(service.url, storage)
    const resuming = second.resumeStream()
    await until(() => hasText(second), Boolean)
    await second.stop()
    await Promise.all([sending, resuming])
    expect(textOf(first.lastMessage!)).to.contain('one').and.not.contain('ten')
    const { conversation_id: id } = first.lastMessage!.metadata as { conversation_id: string }
    const svc = createClient({ url: service.url })
    const { messages } = await svc.get('/api/v1/conversations/{id}', { path: { id } })
    expect(messages.at(-1)).to.include({ status: 'cancelled' })
  })

  it('resumes a turn that waits for an approval', async () => {
    const storage = storageOf()
    const first = chatWith(service.url, storage)
    await first.sendMessage({ text: '/tool whereabouts {}' })
    const second = chatWith(service.url, storage)
    second.messages = structuredClone(first.messages)
    await second.resumeStream()
    const [part] = toolsOf(second.lastMessage)
    expect(part?.state).to.equal('approval-requested')
    await second.addToolApprovalResponse({ id: part!.approval!.id, approved: true })
    expect(textOf(await ended(second))).to.match(/whereabouts answered: \d+/)
    expect(second.messages).to.have.length(2)
  })

  describeWith('chromium', 'in examples/ai-sdk-chat in Chromium', () => {
    let browser: Browser
    let folder: string
    let example: Service
    let pages: Awaited<ReturnType<typeof preview>>

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), 'svc-ai-sdk-chat-'))
      example = await startService({ args: ['--config', join(EXAMPLE, 'svc.config.yaml')] })
      const common = { root: EXAMPLE, logLevel: 'silent', build: { outDir: folder, emptyOutDir: true } } as const
      await build({ ...common, resolve: { conditions: ['svc-source', ...defaultClientConditions] } })
      const proxy = { '/api': example.url }
      pages = await preview({ ...common, preview: { port: 0, host: '127.0.0.1', proxy } })
      browser = await chromium.launch({
        executablePath: chromiumPath()!,
        args: ['--headless', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
      })
    })
    after(async () => {
      await browser?.close()
      await pages?.close()
      await example?.[Symbol.asyncDispose]()
      if (folder) await rm(folder, { recursive: true, force: true })
    })

    async function open(): Promise<{ page: Page; problems: string[] }> {
      const page = await browser.newPage()
      const problems: string[] = []
      page.on('pageerror', error => problems.push(error.message))
      page.on('console', message => message.type() === 'error' && problems.push(message.text()))
      await page.goto(pages.resolvedUrls!.local[0]!)
      return { page, problems }
    }
    const send = async (page: Page, text: string) => {
      await page.getByLabel('Message').fill(text)
      await page.getByRole('button', { name: 'Send' }).click()
    }

    it('chats, asks before a tool runs, and goes on', async () => {
      const { page, problems } = await open()
      await send(page, 'Hello')
      await page.getByText('You said: Hello', { exact: true }).waitFor()
      await send(page, '/tool calculate {"expression": "6*7"}')
      await page.getByText('calculate {"expression":"6*7"}').waitFor()
      await page.getByRole('button', { name: 'Allow' }).click()
      await page.getByText('calculate answered: 42').waitFor()
      await send(page, '/tool calculate {"expression": "6*8"}')
      await page.getByRole('button', { name: 'Deny' }).click()
      await page.getByText('not allowed', { exact: true }).waitFor()
      await page.locator('[data-status=ready]').waitFor()
      await send(page, 'The end')
      await page.getByText('You said: The end (turn 4)').waitFor()
      expect(problems).to.deep.equal([])
      expect(await page.locator('article').count()).to.equal(8)
    })

    it('goes on after the page was loaded again', async () => {
      const { page, problems } = await open()
      await send(page, COUNTING)
      await page.locator('[data-role=assistant]').filter({ hasText: 'one' }).waitFor()
      await page.reload()
      await page.locator('[data-role=assistant]').filter({ hasText: 'ten' }).waitFor()
      await page.locator('[data-status=ready]').waitFor()
      await send(page, 'Again')
      await page.getByText('You said: Again (turn 2)').waitFor()
      expect(problems).to.deep.equal([])
      expect(await page.locator('article').count()).to.equal(4)
    })
  })
})
