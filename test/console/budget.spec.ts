import { execFileSync } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { expect } from 'chai'

const KIB = 1_024
const SIZES = new URL('../../plugins/api/console/assets/sizes.json', import.meta.url)

interface Sizes {
  readonly first: { readonly js: number; readonly css: number }
  /** What each page, and each part that is loaded when it is first used, adds. */
  readonly parts: Readonly<Record<string, number>>
}

describe('the size of the console, compressed', function () {
  this.timeout(120_000)
  let sizes: Sizes
  before(async () => {
    execFileSync(process.execPath, ['scripts/console.mjs'], { stdio: 'ignore' })
    sizes = JSON.parse(await readFile(SIZES, 'utf8')) as Sizes
  })

  it('is at most 160 KiB of scripts and 20 KiB of styles for the first load', () => {
    expect(sizes.first.js / KIB).to.be.within(50, 160)
    expect(sizes.first.css / KIB).to.be.within(3, 20)
  })

  it('is at most 100 KiB more for each page, form and chart', () => {
    const pages = Object.keys(sizes.parts).filter(name => name.startsWith('pages/'))
    expect(pages).to.include.members(['pages/tools.tsx', 'pages/plugins.tsx', 'pages/usage.tsx', 'pages/logs.tsx'])
    for (const [name, bytes] of Object.entries(sizes.parts)) expect(bytes / KIB, name).to.be.at.most(100)
  })
})
