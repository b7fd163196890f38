// One at a time, in the order of arrival.

/** Resolves with its release when everyone who came before has let go. */
export function createLock(): () => Promise<() => void> {
  let last: Promise<void> = Promise.resolve()
  return async () => {
    const before = last
    let release = () => {}
    last = new Promise<void>((resolve) => {
      release = resolve
    })
    await before
    return release
  }
}
