import { readFile } from 'node:fs/promises'
import { relative } from 'node:path'
import { isWithin } from './paths.ts'

/** One line of `/proc/self/mountinfo`: file system, mounted folder, mount point. Paths are escaped as the kernel does. */
interface Mount {
  readonly device: string
  readonly root: string
  readonly at: string
}

/** Mounts of the kernel and of bubblewrap in `/proc` and `/dev`. */
const [IN_PROC, IN_DEV] = ['sys sysrq-trigger irq bus', 'null zero full random urandom tty pts console shm mqueue']
const within = (folder: string, names: string) => names.split(' ').map(name => `${folder}/${name}`)
const OWN = ['/', ...within('/proc', IN_PROC), ...within('/dev', IN_DEV)]

/** A shell script that compares the mounts inside with the expected ones, and runs the program only if they match. It starts no other program. */
const CHECK = `
nl='
' seen=$nl bound=$1 other=$2 inner=$3
shift 3
while read -r _ _ device root at _; do
  case $inner in *"$nl$device $root $at$nl"*) continue ;; esac
  case $seen in *"$nl$at$nl"*) bad=1 ;; esac
  case $bound$other in *"$nl$device $root $at$nl"* | *"$nl$at$nl"*) ;; *) bad=1 ;; esac
  seen=$seen$at$nl
done < /proc/self/mountinfo
[ -z "$bad" ] && exec "$@"
echo 'svc: a folder was replaced while the sandbox started; the program did not run' >&2
exit 126`

/**
 * Returns arguments that go before the program and verify the mounts. bubblewrap follows links. Another process with write access can replace a folder by a
 * link between the check and the mount. Then the sandbox would show, or open for writing, another folder of the host. So the mounts are compared with the
 * expected ones before the program runs. `line` is the command line of bubblewrap, `write` the writable folders.
 */
export async function verifying(line: readonly string[], write: readonly string[]): Promise<string[]> {
  const host = mountsIn(await readFile('/proc/self/mountinfo', 'utf8'))
  const bound: string[] = []
  const other = [...OWN]
  const sources: string[] = []
  line.slice(0, line.indexOf('--')).forEach((word, at) => {
    const [first, second] = [line[at + 1]!, line[at + 2]!]
    if (/^--(ro-)?bind$/.test(word)) {
      bound.push(expected(host, first, second))
      sources.push(first)
    } else if (/^--(tmpfs|proc|dev)$/.test(word)) other.push(escaped(first))
  })
  // bwrap also mounts the host's mounts below a folder, repeatedly if folders in it are bound too
  const below = host.filter(({ at }) => sources.some(source => at !== escaped(source) && isWithin(at, escaped(source))))
  const isWritable = ({ at }: Mount) => write.some(folder => isWithin(at, escaped(folder)))
  const inner = below.filter(isWritable).map(({ device, root, at }) => `${device} ${root} ${at}`)
  const apart = below.filter(one => !isWritable(one)).map(({ at }) => at)
  return ['/bin/sh', '-c', CHECK, 'sh', lines(bound), lines([...other, ...apart]), lines(inner)]
}

const lines = (all: readonly string[]) => `\n${all.map(one => `${one}\n`).join('')}`

function mountsIn(text: string): Mount[] {
  return text
    .trimEnd()
    .split('\n')
    .map(line => {
      const [, , device = '', root = '', at = ''] = line.split(' ')
      return { device, root, at }
    })
}

/** The expected line of a folder of the host after it is mounted. */
function expected(host: readonly Mount[], source: string, place: string): string {
  const path = escaped(source)
  const around = host.filter(({ at }) => isWithin(path, at)).toSorted((one, other) => one.at.length - other.at.length)
  const { device, root, at } = around.at(-1)!
  const inner = relative(at, path)
  return `${device} ${inner === '' ? root : `${root === '/' ? '' : root}/${inner}`} ${escaped(place)}`
}

/** The kernel writes these four characters as octal numbers. */
const escaped = (path: string) =>
  path.replace(/[ \t\n\\]/g, character => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`)
