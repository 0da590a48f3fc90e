import { readLock } from '@svc/plugin-manager/set'
import { expect } from 'chai'
import type { Page } from 'playwright-core'
import { runSvc } from '../support/command.ts'
import { describeWith } from '../support/needs.ts'
import { TIDES, type Tides, tidesTarball } from '../support/tides.ts'
import { until } from '../support/wait.ts'
import { type Installable, openInstallable } from './support/installable.ts'
import { useConsole } from './support/use-console.ts'

const NEEDED = ['admin-api', 'manager', 'event-feed', 'queue-store', 'jobs', 'console']
/** A plan, and a start of the server with the change. */
const CHANGE = { timeout: 120_000 }
/** The setup of version 1.0.0 reaches for a host that its manifest does not name. */
const REACHES = "fetch('https://elsewhere.example/').catch(() => {})"

describeWith('bubblewrap', 'versions of plugins in the console', function () {
  this.timeout(600_000)
  describeWith('chromium', 'in a browser', () => {
    let plugins: Installable
    const publish = async (tides: Tides) => {
      const { file, pkg } = await tidesTarball(plugins.folder, tides)
      await plugins.registry.publish(file, pkg)
    }
    const server = useConsole(async (ends, home) => {
      plugins = await openInstallable(ends, NEEDED)
      await publish({ version: '1.0.0', setup: REACHES, svc: { permissions: { network: ['tides.example'] } } })
      const installed = await runSvc(['plugins', 'install', TIDES, '--yes'], { ...plugins.setup, home })
      expect(installed.code, installed.err).to.equal(0)
      return plugins.setup
    })
    const { open } = server
    const versions = async () => (await readLock(server.home)).plugins.map(({ version }) => version)
    const changed = async (page: Page) => {
      await page.locator('.bar').getByText('done', { exact: true }).waitFor(CHANGE)
      await page.getByRole('link', { name: 'Show the plugins' }).click()
      await page.locator('.list-item', { hasText: TIDES }).click()
    }

    it('shows what a plugin was refused: each access that its manifest does not name', async () => {
      const refused = async () => {
        const response = await fetch(`${server.url}/api/v1/plugins/${TIDES}`)
        return ((await response.json()) as { refusals: { network?: number } }).refusals.network ?? 0
      }
      await until(refused, count => count > 0)
      await using view = await open('plugins?filter=refused')
      const { page, problems } = view
      const item = page.locator('.list-item', { hasText: TIDES })
      await item.getByText(/^\d+ refused$/).waitFor()
      await item.click()
      await page.getByRole('link', { name: /^Refused \d+$/ }).click()
      const card = page.getByRole('region', { name: 'What it tried without a permission' })
      await card.getByText('network', { exact: true }).waitFor()
      expect(Number(await card.getByRole('definition').innerText())).to.be.greaterThan(0)
      expect(problems).to.deep.equal([])
    })

    it('shows the memory and the time of the processor of a plugin with a process of its own', async () => {
      const read = async () => {
        const response = await fetch(`${server.url}/api/v1/plugins/${TIDES}`)
        return (await response.json()) as { process: { memory_bytes: number; cpu_ms: number; restarts: number } | null }
      }
      await until(read, ({ process }) => (process?.memory_bytes ?? 0) > 0)
      await using view = await open(`plugins?id=${TIDES}`)
      const { page, problems } = view
      await page.getByRole('link', { name: 'Costs', exact: true }).click()
      const card = page.getByRole('region', { name: 'Its processes, of all workers' })
      const [memory, processor, restarts] = await card.getByRole('definition').allInnerTexts()
      expect(memory).to.match(/^\d+\.\d MiB$/)
      expect(Number.parseFloat(memory!)).to.be.above(1)
      expect(processor).to.match(/^[\d.,]+ (ms|s)$/)
      expect(Number.parseFloat(processor!)).to.be.above(0)
      expect(restarts).to.equal('0')
      expect(problems).to.deep.equal([])
    })

    it('updates a plugin to its newest version with the permissions that it adds', async () => {
      await publish({ version: '1.1.0', svc: { permissions: { network: ['tides.example', 'moon.example'] } } })
      await using view = await open(`plugins?id=${TIDES}`)
      const { page, problems } = view
      await page.getByRole('button', { name: 'Update' }).click()
      const dialog = page.getByRole('dialog', { name: `Update ${TIDES}` })
      await dialog.getByText('1.0.0 → 1.1.0').waitFor(CHANGE)
      await dialog.getByText('connect to moon.example').waitFor()
      expect(await versions()).to.deep.equal(['1.0.0'])
      await dialog.getByRole('button', { name: 'Allow this and update' }).click()
      await changed(page)
      await page.getByRole('region', { name: 'Permissions' }).getByText('moon.example').waitFor()
      expect(await versions()).to.deep.equal(['1.1.0'])
      expect(problems.filter(text => !/ERR_|network/i.test(text))).to.deep.equal([])
    })

    it('goes back to the version before, without the permissions that came with the update', async () => {
      await using view = await open(`plugins?id=${TIDES}`)
      const { page, problems } = view
      await page.getByRole('button', { name: 'Return to 1.0.0' }).click()
      const dialog = page.getByRole('dialog', { name: `Rollback ${TIDES}` })
      await dialog.getByText('1.1.0 → 1.0.0').waitFor(CHANGE)
      await dialog.getByText('No longer').waitFor()
      await dialog.getByRole('button', { name: 'Allow this and roll back' }).click()
      await changed(page)
      const permissions = page.getByRole('region', { name: 'Permissions' })
      await permissions.getByText('tides.example').waitFor()
      await permissions.getByText('moon.example').waitFor({ state: 'hidden' })
      expect(await versions()).to.deep.equal(['1.0.0'])
      expect(problems.filter(text => !/ERR_|network/i.test(text))).to.deep.equal([])
    })
  })
})
