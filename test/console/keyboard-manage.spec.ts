import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { hostileCommand } from '../support/hostile.ts'
import { describeWith } from '../support/needs.ts'
import { tidesFile } from '../support/tides.ts'
import { until } from '../support/wait.ts'
import { type Installable, openInstallable } from './support/installable.ts'
import { byKeyboard } from './support/keyboard.ts'
import { useConsole } from './support/use-console.ts'

const KEY = 'the-key-of-the-operator'
const LONG = { timeout: 60_000 }
const PLAN = { timeout: 180_000 }
const NEEDED = ['auth-api-key', 'auth-bearer', 'admin-api', 'manager', 'event-feed', 'queue-store', 'jobs', 'console']
const PAGE = { title: 'Tide tables', scope: 'read', view: 'tides.json' }
/** A plugin whose only part is a page. */
const PLUGIN = {
  version: '1.0.0',
  svc: { kind: 'page', contributes: { console_pages: { tides: PAGE } } },
  files: {
    'index.js': `import { definePlugin } from '@svc/core'
import { ConsolePages } from '@svc/core/contracts'
export default definePlugin({ setup: scope => scope.add(ConsolePages, 'tides', ${JSON.stringify(PAGE)}) })
`,
    'console/tides.json': JSON.stringify({ parts: [{ type: 'markdown', text: 'High water at noon.' }] }),
  },
}

async function signIn(page: Page, credential: string): Promise<void> {
  await page.getByLabel('Key or token').waitFor()
  await page.keyboard.type(credential)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Sign in' }).waitFor()
}

describeWith('chromium', 'servers and tokens in the console, by keys alone', function () {
  this.timeout(180_000)
  const clients = [{ name: 'fixed', ...hostileCommand({ fickle: 'start' }) }]
  const server = useConsole({
    files: { 'svc.config.yaml': JSON.stringify({ mcp: { clients } }) },
    env: {
      SVC_SECRETS_KEY: randomBytes(32).toString('base64'),
      SVC_API_KEY: KEY,
      SVC_SERVER__AUTH__ENABLED: 'true',
    },
  })
  const { open } = server

  it('a token is made, used and revoked, and the open page of its holder says so', async () => {
    await using admin = await open('overview')
    const keys = await byKeyboard(admin.page)
    await signIn(admin.page, KEY)
    await keys.go('k', 'Tokens')
    await keys.activate('New token')
    await keys.see(admin.page.getByRole('dialog'))
    await keys.type('visitor')
    await keys.press('Enter')
    const token = admin.page.getByLabel('Token', { exact: true })
    await keys.see(token)
    const text = await token.innerText()
    await keys.press('Escape')
    await keys.see(admin.page.getByRole('row', { name: /visitor/ }))

    await using visitor = await open('overview')
    const theirs = await byKeyboard(visitor.page)
    await signIn(visitor.page, text)
    await theirs.see(visitor.page.getByText('token:visitor'))
    await theirs.go('x', 'Plugins')

    await keys.press('/')
    await keys.type('visitor')
    await until(
      async () => admin.page.url(),
      url => url.includes('q=visitor')
    )
    await keys.activate('Revoke')
    await keys.see(admin.page.getByRole('dialog'))
    await keys.activate('Revoke')
    await theirs.see(visitor.page.getByRole('dialog', { name: 'Sign in again' }))
    await keys.see(admin.page.getByText('Nothing found'))
    // the holder signs in with another credential, over the page
    await theirs.type(KEY)
    await theirs.press('Enter')
    await visitor.page.getByRole('dialog').waitFor({ state: 'hidden' })
    await keys.end()
    await theirs.end()
    expect([...admin.problems, ...visitor.problems]).to.deep.equal([])
  })

  it('the changed words of an MCP tool are read and approved, and the server is reloaded', async () => {
    const mcpServer = async () => {
      const answer = await fetch(`${server.url}/api/v1/mcp/servers/fixed`, { headers: { 'x-api-key': KEY } })
      return (await answer.json()) as { state: string; changed: string[] }
    }
    await until(mcpServer, ({ state }) => state === 'connected')
    await using view = await open('overview')
    const { page, problems } = view
    const keys = await byKeyboard(page)
    await signIn(page, KEY)
    await keys.go('m', 'MCP servers')
    await keys.activate(/^fixed/)
    await keys.activate('Disable')
    await keys.activate('Enable')
    await until(mcpServer, ({ changed }) => changed.includes('echo'))
    await keys.activate('See the changes')
    await keys.see(page.getByRole('region', { name: 'Changes of echo' }))
    await keys.activate('Approve')
    await keys.see(page.getByText('Nothing has changed since it was approved'))
    expect((await mcpServer()).changed).to.deep.equal([])
    await keys.go('n', 'Configuration')
    await keys.activate('Reload')
    await page.getByText('New workers serve.').waitFor(LONG)
    await keys.go('o', 'Overview')
    await keys.see(page.getByText('live').first())
    await keys.end()
    expect(problems.filter(text => !/ERR_|network/i.test(text))).to.deep.equal([])
  })
})

describeWith('bubblewrap', 'plugins in the console, by keys alone', function () {
  this.timeout(600_000)
  describeWith('chromium', 'in a browser', () => {
    let plugins: Installable
    const { open } = useConsole(async ends => {
      plugins = await openInstallable(ends, NEEDED)
      return plugins.setup
    })

    it('one is installed from an archive after consent, and its page is there without a reload', async () => {
      const archive = await tidesFile(plugins.folder, PLUGIN)
      await using view = await open('overview')
      const { page, problems } = view
      const keys = await byKeyboard(page)
      await keys.go('x', 'Plugins')
      await keys.activate('Install')
      await keys.tabTo(/^From the registry/)
      await keys.press('ArrowDown')
      const chooser = page.waitForEvent('filechooser')
      await keys.activate(/^Archive/)
      await (await chooser).setFiles(archive)
      await keys.activate('Inspect')
      const plan = page.getByRole('region', { name: 'The plan' })
      await plan.getByText('console pages: tides').waitFor(PLAN)
      await keys.activate('Allow this and install')
      await page.locator('.bar').getByText('done', { exact: true }).waitFor(PLAN)
      await page.getByRole('link', { name: 'Tide tables' }).waitFor(PLAN)
      await keys.activate('Tide tables')
      await keys.see(page.getByRole('heading', { name: 'Tide tables', level: 1 }))
      await keys.see(page.getByText('High water at noon.'))
      await keys.end()
      expect(problems.filter(text => !/ERR_|network/i.test(text))).to.deep.equal([])
    })
  })
})
