import { readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect } from 'chai'

const PAGE = fileURLToPath(new URL('../page/src', import.meta.url))
const sources = readdirSync(PAGE, { recursive: true, encoding: 'utf8' })
  .filter(name => /\.tsx?$/.test(name))
  .map(name => ({ name, text: readFileSync(`${PAGE}/${name}`, 'utf8') }))
const having = (pattern: RegExp) =>
  sources
    .filter(({ text }) => pattern.test(text))
    .map(({ name }) => name)
    .sort()

// While one of them is open, no page of a plugin is loaded: test/console/plugin-focus.spec.ts
describe('what lies over the page of the console', () => {
  it('is a dialog of the panel, the list of commands, or a menu: each says so to the frames of plugins', () => {
    expect(having(/@base-ui\/react/)).to.deep.equal(['dialog.tsx', 'menu.tsx', 'palette.tsx'])
    expect(having(/import\('\.\/dialog\.tsx'\)|from '\.\.?\/dialog\.tsx'/)).to.deep.equal(['parts.tsx'])
    expect(having(/import\('\.\/menu\.tsx'\)|from '\.\.?\/menu\.tsx'/)).to.deep.equal(['more.tsx'])
    expect(having(/import\('\.\/palette\.tsx'\)|from '\.\.?\/palette\.tsx'/)).to.deep.equal(['shell.tsx'])
    expect(having(/useCover\(/).filter(name => name !== 'frame-guard.ts')).to.deep.equal(['menu.tsx', 'parts.tsx', 'shell.tsx'])
  })

  it('is nothing else: no dialog of the browser, no other menu', () => {
    expect(having(/<dialog\b|showModal\(|\bpopover=|showPopover\(|createPortal|role="(?:alertdialog|menu)"/)).to.deep.equal([])
  })
})
