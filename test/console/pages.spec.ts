import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { openCuttingProxy } from '../client/support/cutting-proxy.ts'
import { runSvc } from '../support/command.ts'
import { describeWith } from '../support/needs.ts'
import { inNewHome, post, startService } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { expectAccessible, openConsole } from './support/browser.ts'
import { useConsole } from './support/use-console.ts'

const SUPPORT = (name: string) => fileURLToPath(new URL(`../support/${name}`, import.meta.url))
const EVERYTHING = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')
const AUTH = { SVC_API_KEY: 'the-key-of-the-operator', SVC_SERVER__AUTH__ENABLED: 'true' }
/** A PNG of one pixel. */
const DOT = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const COUNTING = '/pace 60\none two three four five six seven eight nine ten eleven twelve'
const WHOLE = /one two three four five six seven eight nine ten eleven twelve/

/** The list of messages of a conversation, in the page. */
const BOX = "document.querySelector('.reader-scroll')"

const message = (page: Page) => page.getByLabel('Message', { exact: true })
async function say(page: Page, text: string) {
  await message(page).fill(text)
  await page.keyboard.press('Enter')
}

describeWith('chromium', 'the pages of the console', function () {
  this.timeout(60_000)
  const server = useConsole({ config: { plugins: [SUPPORT('asks.ts')], rest: { chat_body_limit: 102_400 } } })
  const { at, open } = server

  describe('playground', () => {
    it('asks the reader before a tool runs, and goes on with the answer', async () => {
      await using view = await open('playground')
      const { page, problems } = view
      await say(page, '/tool whereabouts {}')
      const question = page.getByRole('form', { name: 'Question of whereabouts' })
      await question.getByRole('button', { name: 'Allow' }).click()
      await page.getByText(/whereabouts answered: \d+/).waitFor()
      await say(page, '/tool whereabouts {}')
      await page.getByText('waits for you').waitFor()
      await question.getByRole('button', { name: 'Deny' }).click()
      await page.locator('details.tool').last().getByText('failed', { exact: true }).waitFor()
      expect(problems).to.deep.equal([])
    })

    it('sends what the settings of the address say', async () => {
      await using view = await open('playground?provider=local&model=local-small')
      const { page } = view
      await page.getByLabel('System prompt').fill('Be short.')
      await say(page, 'Hello')
      await page.getByText('local / local-small').waitFor()
      await view.context.grantPermissions(['clipboard-read', 'clipboard-write'])
      await page.getByRole('button', { name: 'Copy as curl' }).click()
      const copied = await page.evaluate<string>('navigator.clipboard.readText()')
      expect(copied).to.contain('"model":"local-small"').and.contain('"system":"Be short."').and.contain('$SVC_API_KEY')
      await page.getByLabel(/^Mode(?!l)/).selectOption('plan')
      await until(
        async () => page.url(),
        url => url.includes('mode=plan')
      )
    })

    it('shows the data of a reply, and keeps its schema and the system prompt in the address', async () => {
      await using view = await open('playground')
      const { page, problems } = view
      const schema = page.getByLabel('JSON Schema of the reply')
      await schema.fill('{ "type": ')
      await page.getByText('This is not valid JSON').waitFor()
      await message(page).fill('Hello')
      expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).to.equal(true)
      await schema.fill('[1]')
      await page.getByText('A JSON Schema is an object').waitFor()
      await schema.fill('{"type":"banana"}')
      await say(page, 'Hello')
      await page.getByRole('status').getByText('"banana" is not a type').waitFor()
      expect(await schema.getAttribute('aria-invalid')).to.equal('true')
      const log = await page.getByRole('alert').last().getByRole('link').getAttribute('href')
      expect(log).to.match(/^\/console\/logs\?request=/)
      await expectAccessible(page, 'a schema with a problem')
      await schema.fill('{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}')
      await page.getByLabel('System prompt').fill('Be short.')
      await say(page, 'Ada')
      const data = page.getByRole('region', { name: 'Data of the reply' })
      await data.waitFor()
      expect(JSON.parse(await data.innerText())).to.deep.equal({ name: 'Ada' })
      await page.reload()
      await page.getByRole('heading', { name: 'Playground', level: 1 }).waitFor()
      expect(JSON.parse(await schema.inputValue())).to.have.property('required')
      expect(await page.getByLabel('System prompt').inputValue()).to.equal('Be short.')
      await page.getByLabel('System prompt').fill('x'.repeat(2_001))
      await page.getByText('Longer than 2,000 characters: not in the address.').waitFor()
      await message(page).focus()
      await until(
        async () => page.url(),
        url => url.includes('schema=') && !url.includes('system=')
      )
      expect(problems).to.deep.equal([])
    })

    it('sends images and files, and shows them in the conversation', async () => {
      await using view = await open('playground')
      const { page, problems } = view
      await page.getByLabel('Files', { exact: true }).setInputFiles([
        { name: 'dot.png', mimeType: 'image/png', buffer: Buffer.from(DOT, 'base64') },
        { name: 'notes.txt', mimeType: 'text/plain', buffer: Buffer.from('some notes') },
        { name: 'empty.txt', mimeType: 'text/plain', buffer: Buffer.from('') },
        { name: 'large.bin', mimeType: '', buffer: Buffer.alloc(80_000) },
      ])
      await page
        .getByText(/^Not added: empty.txt, large.bin. A message takes at most 32 files and 100.0 KiB in Base64./)
        .waitFor()
      await page.evaluate(`(() => {
        const data = new DataTransfer()
        data.items.add(new File(['pasted'], '<b>pasted</b>.txt', { type: 'text/plain' }))
        document.querySelector('#message').dispatchEvent(new ClipboardEvent('paste', { clipboardData: data, bubbles: true }))
      })()`)
      const files = page.getByRole('list', { name: 'Attached files' })
      await files.getByText('<b>pasted</b>.txt').waitFor()
      await page.getByText(/3 of 32 files, \d+ bytes of 100.0 KiB/).waitFor()
      await expectAccessible(page, 'attached files')
      await page.getByRole('button', { name: 'Remove <b>pasted</b>.txt' }).click()
      await say(page, 'What is on the picture?')
      const image = page.locator('.message-user img')
      await image.waitFor()
      await page.getByText(/tokens in/).waitFor()
      const width = "document.querySelector('.message-user img').naturalWidth"
      await until(
        () => page.evaluate<number>(width),
        pixels => pixels === 1
      )
      await view.context.grantPermissions(['clipboard-read', 'clipboard-write'])
      await page.getByRole('button', { name: 'Copy as TypeScript' }).click()
      await page.getByText('Copied').waitFor()
      expect(await page.evaluate<string>('navigator.clipboard.readText()')).to.contain('await readFile("dot.png", \'base64\')')
      await page.getByRole('link', { name: 'Conversation', exact: true }).click()
      await page.getByRole('region', { name: 'Messages' }).getByText('notes.txt, text/plain, 10 bytes', { exact: true }).waitFor()
      await until(
        () => page.evaluate<number>(width),
        pixels => pixels === 1
      )
      await expectAccessible(page, 'a conversation with a picture')
      expect(problems).to.deep.equal([])
    })

    it('asks the server what it takes before it adds a file', async () => {
      await using view = await open('overview')
      const { page } = view
      const answered = Promise.withResolvers<void>()
      await page.route('**/api/v1/config?*', async route => {
        await answered.promise
        await route.continue()
      })
      await page.goto(at('playground'))
      const file = { name: 'large.bin', mimeType: '', buffer: Buffer.alloc(80_000) }
      await page.getByLabel('Files', { exact: true }).setInputFiles([file])
      answered.resolve()
      await page
        .getByRole('alert')
        .getByText(/^Not added: large.bin. A message takes at most 32 files and 100.0 KiB/)
        .waitFor()
      expect(await page.getByRole('list', { name: 'Attached files' }).count()).to.equal(0)
    })

    it('copies a program for the typed client that gets the same reply', async () => {
      await using view = await open('playground?provider=local&model=local-small')
      const { page } = view
      await say(page, "It's 'quoted' `text` ${here}")
      await page.getByText(/tokens in/).waitFor()
      await view.context.grantPermissions(['clipboard-read', 'clipboard-write'])
      await page.getByRole('button', { name: 'Copy as TypeScript' }).click()
      await page.getByText('Copied').waitFor()
      const code = await page.evaluate<string>('navigator.clipboard.readText()')
      expect(code).to.contain('process.env.SVC_API_KEY').and.contain('"model": "local-small"')
      const said = execFileSync(process.execPath, ['--conditions=svc-source', '--input-type=module-typescript', '--eval', code], {
        encoding: 'utf8',
      })
      expect(said).to.equal("You said: It's 'quoted' `text` ${here}")
    })

    it('sends a message to two models, each with its own stream, questions and stop', async () => {
      await using view = await open('playground?provider=local&model=local-1')
      const { page, problems } = view
      await page.getByLabel('Compare two models').check()
      await page.getByLabel('Second provider').selectOption('local')
      await page.getByLabel('Second model').selectOption('local-small')
      await until(
        async () => page.url(),
        url => url.includes('compare=on') && url.includes('model2=local-small')
      )
      await page.reload()
      const [first, second] = ['First chat', 'Second chat'].map(name => page.getByRole('region', { name }))
      await say(page, '/pace 300\none two three four five six seven eight nine ten')
      await second!.getByText('local / local-small').waitFor()
      await first!.getByText('local / local-1').waitFor()
      await second!
        .getByText(/one two/)
        .last()
        .waitFor()
      await page.getByRole('button', { name: 'Stop the second chat' }).click()
      await second!.getByText('stopped', { exact: true }).waitFor()
      await first!.getByText(/tokens in/).waitFor()
      expect(await first!.getByText('stopped', { exact: true }).count()).to.equal(0)
      await say(page, '/tool whereabouts {}')
      await first!.getByRole('button', { name: 'Allow' }).click()
      await first!.getByText(/whereabouts answered: \d+/).waitFor()
      await second!.getByRole('button', { name: 'Deny' }).click()
      await second!.locator('details.tool').getByText('failed', { exact: true }).waitFor()
      await expectAccessible(page, 'two chats')
      await page.setViewportSize({ width: 360, height: 800 })
      await until(
        async () => [await first!.boundingBox(), await second!.boundingBox()],
        ([upper, lower]) => upper!.x === lower!.x && upper!.y + upper!.height <= lower!.y
      )
      expect(await page.evaluate('document.documentElement.scrollWidth > innerWidth')).to.equal(false)
      await expectAccessible(page, 'two chats, narrow')
      expect(problems).to.deep.equal([])
    })

    it('stops a reply', async () => {
      await using view = await open('playground')
      const { page } = view
      await say(page, '/pace 300\none two three four five six seven eight nine ten')
      await page
        .getByText(/one two/)
        .last()
        .waitFor()
      await page.keyboard.press('Escape')
      await page.getByText('stopped', { exact: true }).waitFor()
      await page.getByRole('button', { name: 'Send' }).waitFor()
    })

    it('shows why a turn failed', async () => {
      await using view = await open('playground?provider=local&model=none')
      const { page } = view
      await say(page, 'Hello')
      await page.getByRole('alert').getByText('MODEL_NOT_FOUND').waitFor()
      await expectAccessible(page, 'playground with an error')
    })

    it('continues a reply over a broken connection, each token once', async () => {
      await using proxy = await openCuttingProxy(server.url, 4)
      await using view = await openConsole(server.browser, `${proxy.url}/console/playground`)
      const { page } = view
      await say(page, COUNTING)
      await page.getByText(/tokens in/).waitFor()
      expect(await page.locator('.message-assistant .markdown').innerText()).to.match(WHOLE)
      expect(proxy.paths.filter(path => path.includes('/chat/stream')).length).to.be.greaterThan(2)
    })

    it('continues a reply after the page was loaded again, and while the reader looks at another page', async () => {
      await using view = await open('playground')
      const { page } = view
      await say(page, COUNTING)
      await page
        .locator('.message-assistant')
        .getByText(/one two/)
        .waitFor()
      await page.reload()
      await page
        .locator('.message-assistant')
        .getByText(/one two/)
        .waitFor()
      await page.getByRole('link', { name: 'Overview', exact: true }).click()
      await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
      await page.getByRole('link', { name: 'Playground' }).first().click()
      await page.getByText(/tokens in/).waitFor()
      expect(await page.locator('.message-assistant .markdown').innerText()).to.match(WHOLE)
    })

    it('shows text of models as text: no element of theirs, no request of theirs', async () => {
      await using view = await open('playground')
      const { page, problems } = view
      const hostile = [
        '<script>window.hacked = 1</script>',
        '<img src=x onerror="window.hacked = 1">',
        '![pixel](http://evil.example/pixel.png)',
        '[link](javascript:window.hacked=1)',
        '<iframe src="http://evil.example"></iframe>',
        '[data](data:text/html,<script>1</script>)',
        '<svg onload="window.hacked=1"><a xlink:href="javascript:1">x</a></svg>',
        '<style>body{display:none}</style>',
      ]
      for (const text of hostile) {
        await say(page, text)
        await until(
          async () => page.getByText(/tokens in/).count(),
          count => count > hostile.indexOf(text)
        )
      }
      await page.locator('.markdown').last().waitFor()
      expect(await page.evaluate('window.hacked')).to.equal(undefined)
      expect(await page.locator('.transcript').locator('script, img, iframe, style, object, embed').count()).to.equal(0)
      const links = "[...document.querySelectorAll('.transcript a')].map(link => link.getAttribute('href') ?? '')"
      const hrefs = await page.evaluate<string[]>(links)
      expect(hrefs.filter(href => /^(javascript|data|vbscript):/i.test(href))).to.deep.equal([])
      expect(problems).to.deep.equal([])
    })
  })

  it('fills in the form that a tool server asks for', async () => {
    await inNewHome(async place => {
      const clients = [{ name: 'everything', command: process.execPath, args: [EVERYTHING] }]
      await writeFile(join(place, 'svc.config.json'), JSON.stringify({ mcp: { clients } }))
      await writeFile(
        join(place, 'profiles.yaml'),
        'profiles: { default: { tools: ["everything__trigger-elicitation-request"] } }\n'
      )
      await using asking = await startService({ home: place })
      await until(
        async () => (await fetch(`${asking.url}/api/v1/tools`)).text(),
        text => text.includes('trigger-elicitation-request')
      )
      await using view = await openConsole(server.browser, `${asking.url}/console/playground`)
      const { page } = view
      await say(page, '/tool everything__trigger-elicitation-request {}')
      const form = page.getByRole('form')
      await form.locator('#form_name').fill('Ada')
      await form.locator('#form_integer').fill('42')
      await expectAccessible(page, 'a form of a tool')
      await form.getByRole('button', { name: 'Send' }).click()
      await page.getByText(/tokens in/).waitFor()
      const text = await page.locator('.transcript').innerText()
      expect(text).to.contain('Ada')
    })
  })

  describe('conversations', () => {
    it('searches, renames, forks and deletes, and keeps all of it in the address', async () => {
      const { body } = await post(`${server.url}/api/v1/chat`, { message: 'The zebra crosses the road' })
      await until(
        async () => (await fetch(`${server.url}/api/v1/conversations?q=zebra`)).text(),
        text => text.includes(String(body.conversation_id))
      )
      await using view = await open('conversations')
      const { page, problems } = view
      await page.getByRole('heading', { name: 'Conversations', level: 1 }).waitFor()
      await page.keyboard.press('/')
      await page.keyboard.type('zebra')
      await page.locator('mark', { hasText: 'zebra' }).first().waitFor()
      await page.locator('.list-item').first().click()
      await until(
        async () => page.url(),
        url => url.includes('q=zebra') && url.includes(`id=${String(body.conversation_id)}`)
      )
      await page.reload()
      await page.getByRole('region', { name: 'Messages' }).getByText('You said: The zebra crosses the road').waitFor()
      const choose = async (name: string) => {
        await page.getByRole('button', { name: 'More actions' }).click()
        await page.getByRole('menuitem', { name }).click()
      }
      await choose('Rename')
      await page.getByLabel('Title').fill('Of zebras')
      await expectAccessible(page, 'a dialog')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Of zebras', level: 2 }).waitFor()
      await page.getByRole('button', { name: 'Fork from here' }).first().click()
      await page.getByRole('link', { name: 'forked' }).waitFor()
      await choose('Export')
      const download = page.waitForEvent('download')
      await page.getByRole('link', { name: 'Markdown' }).click()
      expect((await download).suggestedFilename()).to.match(/\.md$/)
      await page.keyboard.press('Escape')
      await choose('Delete')
      await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click()
      await page.getByText('Select a conversation').waitFor()
      expect(problems).to.deep.equal([])
    })

    it('shows no picture of what is no image that browsers and models read', async () => {
      const { body } = await post(`${server.url}/api/v1/chat`, { message: 'Look' })
      const id = String(body.conversation_id)
      await using view = await open('overview')
      const { page, problems } = view
      const svg = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" onload="window.hacked = 1"/>').toString('base64')
      const hostile = [
        { type: 'image', mime_type: 'image/svg+xml', data: svg },
        { type: 'image', mime_type: 'text/html', data: svg },
        { type: 'image', mime_type: 'image/png,<b>', data: DOT },
        { type: 'image', mime_type: 'image/png', data: '"><script>window.hacked = 1</script>' },
        { type: 'image', mime_type: 'image/png', data: 'A'.repeat(4 * 1024 * 1024 + 4) },
        { type: 'file', mime_type: 'image/png', data: DOT, name: '<img src=x onerror="window.hacked = 1">' },
        { type: 'image' },
        // a pattern for its end would need minutes
        { type: 'file', mime_type: 'text/plain', data: `${'='.repeat(500_000)}x` },
      ]
      await page.route(`**/api/v1/conversations/${id}?**`, async route => {
        const response = await route.fetch()
        const read = (await response.json()) as { messages: { parts: object[] }[] }
        read.messages[0]!.parts.push(...hostile)
        await route.fulfill({ response, json: read })
      })
      await page.goto(at(`conversations?id=${id}`))
      await until(
        () => page.locator('.message-user figcaption').count(),
        count => count === hostile.length
      )
      expect(await page.locator('.reader-scroll').locator('img, svg[onload], script, iframe').count()).to.equal(0)
      expect(await page.evaluate('window.hacked')).to.equal(undefined)
      expect(problems).to.deep.equal([])
    })

    it('edits a message: a copy goes on with the new text, with the files of the message', async () => {
      const parts = [{ type: 'image', media_type: 'image/png', data: DOT }]
      const { body } = await post(`${server.url}/api/v1/chat`, { message: 'The first question' })
      const id = String(body.conversation_id)
      await post(`${server.url}/api/v1/chat`, { message: 'The wrong question', conversation_id: id, parts })
      await using view = await open(`conversations?id=${id}`)
      const { page, problems } = view
      const messages = page.getByRole('region', { name: 'Messages' })
      await messages.locator('.message-user').nth(1).getByRole('button', { name: 'Edit' }).click()
      const field = page.getByRole('dialog').getByLabel('Message')
      expect(await field.inputValue()).to.equal('The wrong question')
      await expectAccessible(page, 'the dialog to edit a message')
      await field.fill('The right question')
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByRole('heading', { name: 'Playground', level: 1 }).waitFor()
      await page.getByText(/tokens in/).waitFor()
      await page.getByRole('link', { name: 'Conversation', exact: true }).click()
      await page.getByRole('link', { name: 'forked' }).waitFor()
      await messages.locator('.message-user').nth(1).getByText('The right question').waitFor()
      await messages.locator('.message-user').nth(1).locator('img').waitFor()
      expect(await messages.getByText('The wrong question').count()).to.equal(0)
      expect(await messages.getByText('The first question', { exact: true }).count()).to.equal(1)
      await page.goto(at(`conversations?id=${id}`))
      await messages.locator('.message-user').nth(1).getByText('The wrong question').waitFor()
      expect(problems).to.deep.equal([])
    })

    it('reads 10,000 messages with few of them in the page, and scrolls without a long task', async () => {
      const lines = Array.from({ length: 5_000 }, (_, i) => [
        { role: 'user', content: `question ${i}` },
        { role: 'assistant', content: `answer **${i}**` },
      ]).flat()
      const id = await importConversation(server.url, lines)
      await using view = await open(`conversations?id=${id}`)
      const { page } = view
      const messages = page.getByRole('region', { name: 'Messages' })
      await messages.getByText('question 0', { exact: true }).waitFor()
      const height = () => page.evaluate<number>(`${BOX}.scrollHeight`)
      await until(height, all => all > 10_000 * 60)
      expect(await messages.locator('article').count()).to.be.lessThan(60)
      const longest = await page.evaluate<number>(`(async () => {
        const box = ${BOX}
        let most = 0
        const observer = new PerformanceObserver(list => {
          for (const entry of list.getEntries()) most = Math.max(most, entry.duration)
        })
        observer.observe({ type: 'longtask' })
        for (let i = 0; i < 60; i++) {
          box.scrollTop += 400
          await new Promise(resolve => requestAnimationFrame(resolve))
        }
        return most
      })()`)
      await page.evaluate(`${BOX}.scrollTo(0, ${BOX}.scrollHeight)`)
      await messages.getByText('4999').first().waitFor()
      expect(await messages.locator('article').count()).to.be.lessThan(60)
      // the budget is 50 ms on an idle machine; the tests share theirs
      expect(longest).to.be.lessThan(500)
    })
  })

  it('shows the spans of a trace as a tree, with their plugins, and keeps the selection in the address', async () => {
    await using traced = await startService({ env: { SVC_TRACES__ENABLED: 'true' } })
    await post(`${traced.url}/api/v1/chat`, { message: '/tool calculate {"expression": "6*7"}' })
    await post(`${traced.url}/api/v1/chat`, { message: '/fail overloaded' })
    await until(
      async () => (await fetch(`${traced.url}/api/v1/traces?status=error`)).text(),
      text => text.includes('POST /api/v1/chat')
    )
    await using view = await openConsole(server.browser, `${traced.url}/console/traces?status=error`)
    const { page, problems } = view
    await page.locator('.list-item').first().click()
    const spans = page.getByRole('listbox', { name: 'Spans' })
    await spans.getByRole('option').nth(3).waitFor()
    expect(await page.locator('.list-item').count()).to.equal(1)
    await page.getByRole('link', { name: 'All', exact: true }).click()
    await until(
      () => page.locator('.list-item').count(),
      count => count === 2
    )
    // the requests of the console itself are traced too
    await page.getByRole('link', { name: 'With reads' }).click()
    await page.locator('.list-item', { hasText: 'GET /' }).first().waitFor()
    await page.getByRole('link', { name: 'Without reads' }).click()
    await page.locator('.list-item', { hasText: 'POST /api/v1/chat' }).nth(1).click()
    await spans.getByText('model-calls').first().waitFor()
    await spans.focus()
    await page.keyboard.press('ArrowDown')
    await page.keyboard.press('ArrowDown')
    const selected = await spans.locator('[aria-selected="true"]').innerText()
    await until(
      async () => page.url(),
      url => url.includes('span=')
    )
    await page.reload()
    await until(
      async () => spans.locator('[aria-selected="true"]').innerText(),
      text => text === selected
    )
    expect(problems).to.deep.equal([])
  })

  it('goes on over a reload of the server', async () => {
    await using view = await open('overview')
    const { page, problems } = view
    await page.getByText('live').first().waitFor()
    const { code, err } = await runSvc(['reload'], { home: server.home })
    expect(code, err).to.equal(0)
    await post(`${server.url}/api/v1/chat`, { message: 'after the reload' })
    await page.getByText('Turn completed').first().waitFor()
    expect(problems.filter(text => !/ERR_|network/i.test(text))).to.deep.equal([])
  })

  it('moves by keys alone, and names the place', async () => {
    await using view = await open('overview')
    const { page } = view
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('c')
    await page.getByRole('heading', { name: 'Conversations', level: 1 }).waitFor()
    expect(await page.title()).to.equal('Conversations · svc console')
    await until(
      () => page.evaluate<string>('document.activeElement.textContent'),
      text => text === 'Conversations'
    )
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keys' }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('g')
    await page.keyboard.press('p')
    await page.getByRole('heading', { name: 'Playground', level: 1 }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('Hello')
    await page.keyboard.press('Enter')
    await page.getByText('You said: Hello').waitFor()
  })

  it('asks nothing while nothing happens', async () => {
    await using view = await open('overview')
    const { page, requests } = view
    await page.getByText('live').first().waitFor()
    await page.waitForTimeout(2_000)
    const before = requests.length
    await page.waitForTimeout(8_000)
    expect(requests.slice(before)).to.deep.equal([])
  })
})

/** A conversation with these messages. */
async function importConversation(url: string, messages: readonly object[]): Promise<string> {
  const content = JSON.stringify({ messages })
  const { body } = await post(`${url}/api/v1/conversations/import`, { format: 'chat_completions', content })
  return (body.conversations as { conversation_id: string }[])[0]!.conversation_id
}

describeWith('chromium', 'the login of the console in a browser', function () {
  this.timeout(60_000)
  const server = useConsole({ env: AUTH })
  const { open } = server
  const tokenOf = async (name: string, scopes: string) =>
    (await runSvc(['tokens', 'create', '--name', name, '--scope', scopes], { home: server.home })).out.trim()

  it('takes a token, hides what its scopes do not allow, and says within 2 s that it was revoked', async () => {
    const token = await tokenOf('visitor', 'read')
    await using view = await open('overview')
    const { page, problems, requests } = view
    await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor()
    await expectAccessible(page, 'login')
    await page.getByLabel('Key or token').fill('wrong')
    await page.keyboard.press('Enter')
    await page.getByRole('alert').waitFor()
    await page.getByLabel('Key or token').fill(token)
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    expect(page.url()).to.equal(`${server.url}/console/overview`)
    expect(await page.evaluate('document.cookie')).to.equal('')
    expect(await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])')).not.to.contain('svc_')
    expect(await page.getByRole('link', { name: 'Playground' }).count()).to.equal(0)
    await page.goto(`${server.url}/console/webhooks`)
    await page.getByText('Your scopes do not allow this page').waitFor()
    expect(await page.getByRole('button', { name: 'Add a webhook' }).count()).to.equal(0)
    await page.goto(`${server.url}/console/overview`)
    await page.getByText('live').first().waitFor()
    await runSvc(['tokens', 'revoke', 'visitor'], { home: server.home })
    const revoked = Date.now()
    await page.getByRole('dialog', { name: 'Sign in again' }).waitFor({ timeout: 2_000 })
    await page.getByText(/Your session is over/).waitFor()
    expect(Date.now() - revoked).to.be.lessThan(2_000)
    await expectAccessible(page, 'login over the page')
    const before = requests.length
    await page.waitForTimeout(1_500)
    expect(requests.slice(before), 'requests of a page without a session').to.deep.equal([])
    // the page goes on where it was
    await page.getByLabel('Key or token').fill(await tokenOf('another', 'read'))
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    await page.getByText('live').first().waitFor()
    await page.getByText('token:another').waitFor()
    expect(problems).to.deep.equal([])
  })

  it('opens signed in with the address of svc console, and signs out', async () => {
    const { out } = await runSvc(['console', '--json', '--url', server.url], { home: server.home })
    const { url } = JSON.parse(out) as { url: string }
    await using view = await openConsole(server.browser, url)
    const { page } = view
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    expect(page.url()).not.to.contain('code')
    await page.getByText('token:console').waitFor()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to svc' }).waitFor()
    await page.goto(url)
    await page.getByText('the one-time code was used, or has expired: run `svc console` again').waitFor()
  })
})
