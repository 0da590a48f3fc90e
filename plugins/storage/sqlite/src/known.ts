/** So much is known at the most: whoever writes somewhere does so again soon. */
const MOST = 5_000

/** What a connection knows of the file by name. Right until another process writes or something is undone: `clear` it then. */
export class Known<T> extends Map<string, T> {
  keep(name: string, value: T): T {
    if (this.size >= MOST) this.clear()
    this.set(name, value)
    return value
  }
}
