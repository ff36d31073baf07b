//! The library as programs in C and C++ use it: compiled with the compiler of this machine, with
//! AddressSanitizer and UndefinedBehaviorSanitizer where it has them.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]
#![allow(clippy::print_stderr, reason = "a part that is left out says so")]

use std::env;
use std::ffi::OsStr;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

const SANITIZED: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"];

/// The output of a command; fails with all of it unless the command succeeds.
fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    let [out, err] = [stdout, stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(status.success(), "{command:?}\n{status}\n{out}{err}");
    out
}

/// The command of a compiler: of the variable, or the usual one. `None` if there is no such.
fn compiler(variable: &str, usual: &str) -> Option<String> {
    let name = env::var(variable).unwrap_or_else(|_| usual.to_owned());
    let found =
        Command::new(&name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success()).then_some(name)
}

/// A temporary folder into which the library is installed as users do, and its `pkgconfig`.
fn installed() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    // This program is beside the libraries.
    let built = env::current_exe().unwrap();
    run(Command::new(Path::new(ROOT).join("install"))
        .arg(folder.path())
        .arg(built.parent().unwrap()));
    let settings = folder.path().join("lib/pkgconfig");
    (folder, settings)
}

/// Whether the compiler links programs with sanitizers here.
fn sanitizes(compiler: &str, folder: &Path) -> bool {
    let source = folder.join("empty.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
    let program = folder.join("empty");
    let built = Command::new(compiler).args(SANITIZED).arg("-o").arg(&program).arg(source).output();
    let runs = || Command::new(program).status().is_ok_and(|s| s.success());
    built.is_ok_and(|output| output.status.success()) && runs()
}

/// The flags of one line of `volery.pc`.
fn flags(settings: &Path, line: &str) -> Vec<String> {
    let text = std::fs::read_to_string(settings.join("volery.pc")).unwrap();
    let found = text.lines().find_map(|text| text.strip_prefix(line));
    found.unwrap().split(' ').map(str::to_owned).collect()
}

#[test]
fn the_interface_from_c() {
    let cc = compiler("CC", "cc").expect("the tests need a C compiler");
    let (folder, settings) = installed();
    let program = folder.path().join("interface");
    let mut command = Command::new(&cc);
    command
        .args(["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-g", "-O1"])
        .arg("-I")
        .arg(folder.path().join("include"))
        .arg("-o")
        .arg(&program)
        .arg(Path::new(ROOT).join("tests/interface.c"))
        .arg(folder.path().join("lib/libvolery.a"))
        .args(flags(&settings, "Libs.private: "));
    if sanitizes(&cc, folder.path()) {
        command.args(SANITIZED);
    } else {
        let required = env::var_os("VOLERY_SANITIZE").is_some();
        assert!(!required, "{cc} links no programs with {SANITIZED:?}");
        eprintln!("{cc} has no sanitizers here: left out");
    }
    run(&mut command);
    run(&mut Command::new(&program));
    run(Command::new(program).arg("level").env("VOLERY_CPU", "none"));
}

/// A program of a project that finds the installed package by CMake.
#[test]
fn a_program_by_cmake() {
    const PROJECT: &str = "cmake_minimum_required(VERSION 3.13)\n\
        project(program C)\n\
        find_package(volery 0.1 REQUIRED)\n\
        find_package(Threads REQUIRED)\n\
        find_package(volery 0.99 QUIET)\n\
        if(volery_FOUND)\n  message(FATAL_ERROR \"another version is found\")\nendif()\n\
        add_executable(program interface.c)\n\
        target_link_libraries(program volery::volery Threads::Threads)\n";
    let Some(cmake) = compiler("CMAKE", "cmake") else {
        return eprintln!("no cmake: left out");
    };
    let (folder, _) = installed();
    let source = folder.path().join("project");
    std::fs::create_dir(&source).unwrap();
    std::fs::write(source.join("CMakeLists.txt"), PROJECT).unwrap();
    std::fs::copy(Path::new(ROOT).join("tests/interface.c"), source.join("interface.c")).unwrap();
    let build = source.join("build");
    let prefix = format!("-DCMAKE_PREFIX_PATH={}", folder.path().display());
    run(Command::new(&cmake).arg("-S").arg(&source).arg("-B").arg(&build).arg(prefix));
    run(Command::new(cmake).arg("--build").arg(&build));
    run(Command::new(build.join("program")).arg("level").env("VOLERY_CPU", "none"));
}

#[test]
fn the_header_from_cpp() {
    let Some(cpp) = compiler("CXX", "c++") else {
        return eprintln!("no C++ compiler: left out");
    };
    let flags = ["-std=c++17", "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"];
    run(Command::new(cpp)
        .args(flags)
        .args(["-x", "c++"])
        .arg(Path::new(ROOT).join("include/volery.h")));
}

/// Both parties of the example, built as its README says.
#[test]
fn the_millionaires_of_the_example() {
    let (Some(cpp), Some(pkg_config)) =
        (compiler("CXX", "c++"), compiler("PKG_CONFIG", "pkg-config"))
    else {
        return eprintln!("no C++ compiler or no pkg-config: left out");
    };
    let (folder, settings) = installed();
    let found = run(Command::new(pkg_config)
        .args(["--cflags", "--libs", "volery"])
        .env("PKG_CONFIG_PATH", settings));
    let program = folder.path().join("gmw");
    let mut build = Command::new(&cpp);
    build
        .args(["-std=c++17", "-O2", "-pedantic", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(Path::new(ROOT).join("examples/gmw/gmw.cpp"))
        .args(found.split_whitespace());
    run(&mut build);

    let own: Vec<u32> = (0..64).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
    let others = own.iter().enumerate().map(|(i, own)| match i % 4 {
        0 => *own,
        1 => own.wrapping_add(1),
        2 => own.wrapping_sub(1),
        _ => own.rotate_left(16),
    });
    let others: Vec<u32> = others.collect();
    let expected = own.iter().zip(&others);
    let expected: String = expected.map(|(a, b)| if a > b { '1' } else { '0' }).collect();

    // Free once more when the statement ends.
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let port = port.unwrap().port().to_string();
    let party = |number: &str, numbers: &[u32]| {
        let mut command = Command::new(&program);
        command
            .args([number, &port])
            .args(numbers.iter().map(u32::to_string))
            .env::<_, &OsStr>("LD_LIBRARY_PATH", folder.path().join("lib").as_ref());
        command
    };
    let mut first = party("0", &own);
    let first = first.stdout(Stdio::piped()).spawn().unwrap();
    assert_eq!(run(&mut party("1", &others)).trim(), expected);
    let first = first.wait_with_output().unwrap();
    assert!(first.status.success());
    assert_eq!(String::from_utf8(first.stdout).unwrap().trim(), expected);
}
