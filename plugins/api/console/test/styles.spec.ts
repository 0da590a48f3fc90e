import { readFileSync } from 'node:fs'
import { expect } from 'chai'

const sheet = (name: string) => readFileSync(new URL(`../page/src/${name}`, import.meta.url), 'utf8')
const TOKENS = sheet('tokens.css')
const SHEETS = { 'styles.css': sheet('styles.css'), 'manage.css': sheet('manage.css') }

/** Classes that a sheet gives a look of their own, apart from narrow windows and other conditions. */
const classesOf = (text: string) =>
  new Set([...text.replaceAll(/^@media[^]*?^}/gm, '').matchAll(/^\.([\w-]+)(?:,| \{)$/gm)].map(([, name]) => name))

describe('the style sheets of the console', () => {
  it('name each class once: two pages do not change the look of each other', () => {
    const [one, other] = Object.values(SHEETS).map(classesOf)
    expect([...one!].filter(name => other!.has(name))).to.deep.equal([])
  })

  it('take their colours from tokens.css', () => {
    for (const [name, text] of Object.entries(SHEETS)) {
      const colours = [...text.matchAll(/#[0-9a-f]{3,8}\b|\b(?:rgb|hsl|oklch)\(/g)].map(([colour]) => colour)
      expect(colours, name).to.deep.equal([])
    }
    expect(TOKENS.match(/#[0-9a-f]{6}/g)!.length).to.be.greaterThan(20)
  })

  it('take their distances and sizes of text from tokens.css', () => {
    const lengths = /(?:^|[^\w-])-?[\d.]*\d(?:px|r?em|ch|pt)\b/
    for (const [name, text] of Object.entries(SHEETS)) {
      const set = [
        ...text.matchAll(
          /(?<=[{;\s])(?:padding|margin|gap|row-gap|column-gap|font|font-size)(?:-(?:block|inline|top|right|bottom|left)(?:-\w+)?)?:[^;}]+/g
        ),
      ]
      expect(set.length, name).to.be.greaterThan(50)
      expect(
        set.map(([declaration]) => declaration).filter(declaration => lengths.test(declaration)),
        name
      ).to.deep.equal([])
    }
  })

  it('do not set the size of the root, from which every rem follows', () => {
    for (const [name, text] of Object.entries(SHEETS))
      expect(/(?:^|\n)(?:html|:root)[^{]*\{[^}]*font(?:-size)?:/.test(text), name).to.equal(false)
  })
})
