import { readLock } from '@svc/plugin-manager/set'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { runSvc } from '../support/command.ts'
import { describeWith } from '../support/needs.ts'
import { TIDES, type Tides, tidesFile, tidesTarball } from '../support/tides.ts'
import { type Installable, openInstallable } from './support/installable.ts'
import { useConsole } from './support/use-console.ts'

const KEY = 'the-key-of-the-operator'
const AUTH = { SVC_API_KEY: KEY, SVC_SERVER__AUTH__ENABLED: 'true' }
const NEEDED = ['auth-api-key', 'auth-bearer', 'admin-api', 'manager', 'event-feed', 'queue-store', 'jobs', 'console']

async function signIn(page: Page, credential: string): Promise<void> {
  await page.getByLabel('Key or token').fill(credential)
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1 }).filter({ hasNotText: 'Sign in' }).waitFor()
}

describeWith('chromium', 'tokens in the console', function () {
  this.timeout(90_000)
  const server = useConsole({ env: AUTH })
  const { open } = server

  it('are made and shown once, used, and revoked: the open page of the holder says so within 2 s', async () => {
    await using admin = await open('tokens')
    await signIn(admin.page, KEY)
    const { page } = admin
    await page.getByRole('button', { name: 'New token' }).click()
    await page.getByLabel('Name of its holder').fill('visitor')
    await page.keyboard.press('Enter')
    const token = await page.getByLabel('Token', { exact: true }).innerText()
    expect(token).to.match(/^svc_/)
    await page.keyboard.press('Escape')
    await page.getByText('visitor').waitFor()
    expect(await page.content()).not.to.contain(token)
    expect(await page.evaluate('JSON.stringify([{ ...localStorage }, { ...sessionStorage }])')).not.to.contain(token)

    await using visitor = await open('tokens')
    await signIn(visitor.page, token)
    await visitor.page.getByText('token:visitor').waitFor()
    // what the scope `read` does not allow is absent
    for (const name of ['Webhooks', 'Doctor', 'Playground'])
      expect(await visitor.page.getByRole('link', { name }).count(), name).to.equal(0)
    expect(await visitor.page.getByRole('button', { name: /New token|Revoke/ }).count()).to.equal(0)
    await visitor.page.getByRole('link', { name: 'Plugins' }).click()
    await visitor.page.getByRole('heading', { name: 'Plugins', level: 1 }).waitFor()
    expect(await visitor.page.getByRole('link', { name: 'Install', exact: true }).count()).to.equal(0)
    await visitor.page.getByRole('link', { name: 'Overview', exact: true }).click()
    await visitor.page.getByText('live').first().waitFor()

    const row = page.getByRole('row', { name: /visitor/ })
    await row.getByRole('button', { name: 'Revoke' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    const revoked = Date.now()
    await visitor.page.getByRole('dialog', { name: 'Sign in again' }).waitFor({ timeout: 2_000 })
    expect(Date.now() - revoked).to.be.lessThan(2_000)
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    await row.waitFor({ state: 'detached' })
    expect([...admin.problems, ...visitor.problems]).to.deep.equal([])
  })

  it('are made and revoked by keys alone', async () => {
    await using view = await open('overview')
    const { page } = view
    await signIn(page, KEY)
    await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor()
    await page.keyboard.press('g')
    await page.keyboard.press('k')
    await page.getByRole('heading', { name: 'Tokens', level: 1 }).waitFor()
    const press = async (name: string) => {
      for (let pressed = 0; pressed < 60; pressed++) {
        if ((await page.evaluate<string>('document.activeElement.textContent')) === name) return page.keyboard.press('Enter')
        await page.keyboard.press('Tab')
      }
      throw new Error(`no key leads to ${name}`)
    }
    await press('New token')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.type('keyboard')
    await page.keyboard.press('Enter')
    await page.getByLabel('Token', { exact: true }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('row', { name: /keyboard/ }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('keyboard')
    await press('Revoke')
    // its button has the same name as the one that opened it
    await page.locator('[role="dialog"]:focus-within, [role="alertdialog"]:focus-within').waitFor()
    await press('Revoke')
    await page.getByText('Nothing found').waitFor()
  })
})

describeWith('bubblewrap', 'plugins in the console', function () {
  this.timeout(600_000)
  describeWith('chromium', 'in a browser', () => {
    let plugins: Installable
    const server = useConsole(async ends => {
      plugins = await openInstallable(ends, NEEDED)
      return plugins.setup
    })
    const { at, open } = server
    const installed = async () => (await readLock(server.home)).plugins.map(({ name, version }) => `${name} ${version}`)
    const choose = async (page: Page, tides: Tides) => {
      await page.getByLabel('From an archive on this machine').check()
      await page
        .getByLabel('Archive', { exact: false })
        .last()
        .setInputFiles(await tidesFile(plugins.folder, tides))
      await page.getByRole('button', { name: 'Inspect' }).click()
    }
    const ended = (page: Page, word: string) =>
      page.locator('.bar').getByText(word, { exact: true }).waitFor({ timeout: 300_000 })

    it('are installed from an archive: what they may do is shown before, nothing runs without consent', async () => {
      await using view = await open('plugins')
      const { page, problems } = view
      await page.getByRole('link', { name: 'Install', exact: true }).click()
      await choose(page, { version: '1.0.0', svc: { permissions: { network: ['tides.example'], env: ['TIDES_KEY'] } } })
      const plan = page.getByRole('region', { name: 'The plan' })
      await plan.getByText('connect to tides.example').waitFor({ timeout: 300_000 })
      await plan.getByText('read the variable TIDES_KEY').waitFor()
      await plan.getByText('in a process of its own').waitFor()
      expect(await installed()).to.deep.equal([])
      await plan.getByRole('button', { name: 'Allow this and install' }).click()
      await page.getByText(`applying the plan: install ${TIDES}`).waitFor({ timeout: 300_000 })
      await ended(page, 'done')
      expect(await installed()).to.deep.equal([`${TIDES} 1.0.0`])
      await page.getByRole('link', { name: 'Show the plugins' }).click()
      // without a reload of the page
      await page.locator('.list-item', { hasText: TIDES }).click()
      await page.getByRole('region', { name: 'Permissions' }).getByText('tides.example').waitFor()
      expect(problems.filter(text => !/ERR_|network/i.test(text))).to.deep.equal([])
    })

    it('are updated with the difference of their permissions', async () => {
      await using view = await open('plugins?change=install')
      const { page } = view
      await choose(page, { version: '1.1.0', svc: { permissions: { network: ['tides.example', 'moon.example'] } } })
      const plan = page.getByRole('region', { name: 'The plan' })
      await plan.getByText('1.0.0 → 1.1.0').waitFor({ timeout: 300_000 })
      await plan.getByText('New permissions').waitFor()
      await plan.getByText('connect to moon.example').waitFor()
      await plan.getByText('No longer').waitFor()
      await plan.getByRole('button', { name: 'Cancel' }).click()
      await plan.waitFor({ state: 'detached' })
      expect(await installed()).to.deep.equal([`${TIDES} 1.0.0`])
    })

    it('are rolled back when the server cannot start with them, and the page says so', async () => {
      await using view = await open('plugins?change=install')
      const { page } = view
      await choose(page, { version: '1.2.0', setup: "throw new Error('no tides today')" })
      const plan = page.getByRole('region', { name: 'The plan' })
      await plan.getByRole('button', { name: 'Allow this and install' }).click({ timeout: 120_000 })
      await ended(page, 'rolled back')
      await page.getByText('svc has restored the former plugins').waitFor()
      await page.getByRole('alert').getByText('PLUGIN_CHANGE_ROLLED_BACK').waitFor()
      expect(await installed()).to.deep.equal([`${TIDES} 1.0.0`])
    })

    it('are refused with the reason, and uninstalled after a plan', async () => {
      const { file, pkg } = await tidesTarball(plugins.folder, {
        version: '1.0.0',
        name: 'svc-plugin-store',
        svc: { kind: 'store', contributes: {} },
      })
      await plugins.registry.publish(file, pkg)
      await using view = await open('plugins?change=install')
      const { page } = view
      await page.getByLabel('Name of the package').fill('svc-plugin-store')
      await page.keyboard.press('Enter')
      await page.getByRole('alert').getByText('INVALID_VALUE').waitFor({ timeout: 300_000 })
      await page.goto(at(`plugins?id=${TIDES}`))
      await page.getByRole('button', { name: 'Uninstall' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('will be removed').waitFor({ timeout: 300_000 })
      await dialog.getByRole('button', { name: 'Uninstall' }).click()
      await ended(page, 'done')
      expect(await installed()).to.deep.equal([])
      expect((await runSvc(['plugins', 'list', '--json'], { home: server.home, cwd: plugins.folder })).out).not.to.contain(TIDES)
    })
  })
})
