import { readFileSync } from 'node:fs'
import { expect } from 'chai'

interface Locked {
  readonly link?: boolean
  readonly integrity?: string
  readonly dev?: boolean
  readonly optional?: boolean
  readonly os?: readonly string[]
  readonly cpu?: readonly string[]
  readonly libc?: readonly string[]
}

describe('package-lock.json', () => {
  const { packages } = JSON.parse(readFileSync(new URL('../../package-lock.json', import.meta.url), 'utf8')) as {
    packages: Readonly<Record<string, Locked>>
  }
  const fetched = Object.entries(packages).filter(([path, { link }]) => path.startsWith('node_modules/') && link !== true)

  it('pins each package that svc runs with by its integrity', () => {
    const production = fetched.filter(([, { dev }]) => dev !== true)
    expect(production.length).to.be.above(100)
    expect(production.filter(([, { integrity }]) => !integrity?.startsWith('sha512-'))).to.deep.equal([])
  })

  it('pins each development tool, but for binaries of other platforms, as SECURITY.md says', () => {
    const unpinned = fetched.filter(([, { integrity }]) => integrity === undefined)
    const others = unpinned.filter(([, { dev, optional, os, cpu, libc = ['glibc'] }]) => {
      const isHere = (os ?? ['linux']).includes('linux') && (cpu ?? ['x64']).includes('x64') && libc.includes('glibc')
      return dev === true && optional === true && !isHere
    })
    expect(unpinned).to.deep.equal(others)
  })
})
