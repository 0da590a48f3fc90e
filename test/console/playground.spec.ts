import { execFileSync } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { openCuttingProxy } from '../client/support/cutting-proxy.ts'
import { describeWith } from '../support/needs.ts'
import { inNewHome, startService } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { expectAccessible, openConsole } from './support/browser.ts'
import { useConsole } from './support/use-console.ts'

const SUPPORT = (name: string) => fileURLToPath(new URL(`../support/${name}`, import.meta.url))
const EVERYTHING = createRequire(import.meta.url).resolve('@modelcontextprotocol/server-everything/dist/index.js')
/** A PNG of one pixel. */
const DOT = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const COUNTING = '/pace 60\none two three four five six seven eight nine ten eleven twelve'
const WHOLE = /one two three four five six seven eight nine ten eleven twelve/
const message = (page: Page) => page.getByLabel('Message', { exact: true })
async function say(page: Page, text: string) {
  await message(page).fill(text)
  await page.keyboard.press('Enter')
}

describeWith('chromium', 'the playground of the console', function () {
  this.timeout(60_000)
  const server = useConsole({ config: { plugins: [SUPPORT('asks.ts')], rest: { chat_body_limit: 102_400 } } })
  const { at, open } = server

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
    const schema = page.getByRole('textbox', { name: 'JSON Schema of the reply' })
    await schema.focus()
    await page.locator('.editor-field').waitFor()
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
    await page.locator('.editor-field').waitFor()
    expect(JSON.parse(await schema.innerText())).to.have.property('required')
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
    await page.getByText(/^Not added: empty.txt, large.bin. A message takes at most 32 files and 100.0 KiB in Base64./).waitFor()
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
})
