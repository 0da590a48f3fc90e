// Code that runs in the engine around the guest's code. The engine parses about 6 kB a millisecond, and each run has its own world. So the part that every world
// needs is short, and the rest is parsed on demand. This code is not a barrier: the thread checks all that leaves the engine.

/** Limits of the console: kept lines, characters of a line, and levels. */
export const CONSOLE: { readonly lines: number; readonly characters: number; readonly levels: readonly string[] } = {
  lines: 100,
  characters: 2000,
  levels: ['debug', 'info', 'log', 'warn', 'error'],
}

/**
 * A function of the host's `log`, which is also the getter of the console, and of the input. It returns functions that convert values to and from JSON. It
 * takes the built-ins that it uses before a guest can change them.
 */
export const PRELUDE = `(function(log,text){'use strict'
const{stringify,parse}=JSON,E=TypeError,plain=(k,v)=>{const t=typeof v
if(t==='function'||t==='bigint'||t==='symbol')throw new E('the value is not JSON: '+(k||'it')+' is a '+t)
return v},pack=v=>stringify(v,plain)??'null'
Object.defineProperty(globalThis,'console',{configurable:true,get:log})
return{pack,parse,input:parse(text),script:async v=>pack(await(await v).value)}})`

/** Creates the console, from the host's `log`. */
export const CONSOLE_MADE = `(function (log) {
  const cut = text => text.slice(0, ${CONSOLE.characters})
  const shown = value => {
    if (typeof value === 'string') return value
    try {
      if (value instanceof Error) return value.name + ': ' + value.message
      return typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value)
    } catch {
      return '(a value that cannot be shown)'
    }
  }
  const write = level => (...values) => {
    let line = ''
    for (let at = 0; at < values.length && line.length < ${CONSOLE.characters}; at++) line += (at > 0 ? ' ' : '') + cut(shown(values[at]))
    log(level, cut(line))
  }
  const console = { debug: write('debug'), info: write('info'), log: write('log'), warn: write('warn'), error: write('error') }
  Object.defineProperty(globalThis, 'console', { value: console, writable: true, configurable: true })
  return console
})`

/** Define `fetch` and `files`, from the result of the prelude and the host's `ask`. */
export const GRANTS = {
  fetch: `(function ({ pack, parse }, ask) {
  globalThis.fetch = async (url, { method, headers, body } = {}) => {
    const { text, headers: got, ...rest } = parse(await ask('fetch', pack({ url: String(url), method, headers, body })))
    const get = name => got[String(name).toLowerCase()] ?? null
    return { ...rest, ok: rest.status >= 200 && rest.status < 300, headers: { ...got, get }, text: async () => text, json: async () => parse(text) }
  }
})`,
  files: `(function ({ pack, parse }, ask) {
  globalThis.files = {
    read: async path => parse(await ask('read', pack({ path }))),
    write: async (path, content) => parse(await ask('write', pack({ path, content }))),
    list: async (path = '.') => parse(await ask('list', pack({ path }))),
  }
})`,
} as const

/** Describe a module, or call a method of it, from the result of the prelude, the module and names. */
export const MODULE = {
  describe: `(async function ({ pack }, exported) {
  const all = []
  for (const [slot, items] of Object.entries(await exported)) {
    for (const [name, item] of Object.entries(items)) {
      const parts = Object.entries(item)
      const methods = parts.filter(([, part]) => typeof part === 'function').map(([key]) => key)
      const data = Object.fromEntries(parts.filter(([, part]) => typeof part !== 'function'))
      all.push({ slot, name, data, methods })
    }
  }
  return pack(all)
})`,
  call: `(async function ({ pack, input }, exported, slot, name, method) {
  return pack(await (await exported)[slot][name][method](...input))
})`,
} as const

/** Serializes a thrown value as JSON. */
export const READ_THROWN = `(function ({ pack }, error) {
  const cut = (text, most) => String(text).slice(0, most)
  if (typeof error !== 'object' || error === null) return pack({ message: cut(error, 2000) })
  const { name = '', message = pack(error), stack = '' } = error
  return pack({ name: cut(name, 100), message: cut(message, 2000), place: cut(stack, 400) })
})`
